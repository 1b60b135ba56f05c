import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { gitCredentialEnv } from '../../src/security/git-credentials.ts'

const TOKENS = { GITHUB_TOKEN: "gh's$token`1", GITLAB_TOKEN: 'gitlab-token', BITBUCKET_TOKEN: 'bitbucket-token' }

/** git with a home of its own, whose configuration is `config`. */
async function setUp(secrets: Record<string, string>, config = '') {
  const home = await mkdtemp(join(tmpdir(), 'git-home-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, '.gitconfig'), config)
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    GIT_TERMINAL_PROMPT: '0',
    ...secrets,
    ...gitCredentialEnv(secrets),
  }
  const credential = async (action: string, input: string) => {
    const git = spawn('git', ['credential', action], { env, cwd: home, stdio: ['pipe', 'pipe', 'ignore'] })
    git.stdin.end(input)
    const [out] = await Promise.all([text(git.stdout), once(git, 'close')])
    return Object.fromEntries(out.split('\n').flatMap((line) => (line ? [line.split(/=(.*)/s).slice(0, 2)] : [])))
  }
  const git = async (...args: string[]) => (await promisify(execFile)('git', args, { env, cwd: home })).stdout
  return { home, credential, git }
}

describe('git', () => {
  test.each([
    ['github.com', 'x-access-token', TOKENS.GITHUB_TOKEN],
    ['gitlab.com', 'oauth2', TOKENS.GITLAB_TOKEN],
    ['bitbucket.org', 'x-token-auth', TOKENS.BITBUCKET_TOKEN],
  ])('is given the token of %s', async (host, username, password) => {
    const { credential } = await setUp(TOKENS)
    expect(await credential('fill', `protocol=https\nhost=${host}\npath=owner/repo.git\n\n`)).toMatchObject({
      username,
      password,
    })
  })

  test.each([
    ['another host', 'protocol=https\nhost=github.com.evil.example\n\n'],
    ['a host below', 'protocol=https\nhost=gist.github.com\n\n'],
    ['another port', 'protocol=https\nhost=github.com:8443\n\n'],
    ['a connection anybody can read', 'protocol=http\nhost=github.com\n\n'],
    ['a host whose token there is not', 'protocol=https\nhost=gitlab.com\n\n'],
  ])('is given none for %s', async (_, question) => {
    const { credential } = await setUp({ GITHUB_TOKEN: TOKENS.GITHUB_TOKEN })
    expect(await credential('fill', question)).not.toHaveProperty('password')
  })

  test("keeps the user's own configuration, and its helpers for other hosts", async () => {
    const helper = '!f() { echo username=me; echo password=own-helper; }; f'
    const { credential, git } = await setUp(TOKENS, `[user]\n name = Ada\n[credential]\n helper = "${helper}"\n`)
    expect(await git('config', 'user.name')).toBe('Ada\n')
    expect(await credential('fill', 'protocol=https\nhost=example.org\n\n')).toMatchObject({ password: 'own-helper' })
    expect(await credential('fill', 'protocol=https\nhost=github.com\n\n')).toMatchObject({
      password: TOKENS.GITHUB_TOKEN,
    })
  })

  test('does not write the token to the file of a helper that stores', async () => {
    const { home, credential } = await setUp(TOKENS, '[credential]\n helper = store\n')
    await credential(
      'approve',
      `protocol=https\nhost=github.com\nusername=x-access-token\npassword=${TOKENS.GITHUB_TOKEN}\n\n`,
    )
    await credential('approve', 'protocol=https\nhost=example.org\nusername=me\npassword=mine\n\n')
    expect(await readdir(home)).toContain('.git-credentials')
    expect(await readFile(join(home, '.git-credentials'), 'utf8')).toBe('https://me:mine@example.org\n')
  })

  test('has nothing of the token in its configuration', async () => {
    const { git } = await setUp(TOKENS)
    const config = await git('config', '--list', '--show-origin')
    expect(config).toContain('GITHUB_TOKEN')
    for (const token of Object.values(TOKENS)) expect(config).not.toContain(token)
  })
})

test('without such a token, or with one of several lines, nothing is configured', () => {
  expect(gitCredentialEnv({ OTHER_TOKEN: 'abcdefgh' })).toEqual({})
  expect(gitCredentialEnv({ GITHUB_TOKEN: 'abcdefgh\nurl=https://evil.example' })).toEqual({})
})

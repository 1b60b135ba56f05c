/** What agents on the machine of a person may use of the home: nothing, unless the person says so. */
import type { ChildProcess } from 'node:child_process'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { HomeGrants } from '../../src/access/home-access.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { Finished } from '../support/command.ts'
import { runCommand, startCommand } from '../support/command.ts'
import { startServer } from '../support/server.ts'

const TOKEN = 'npm_0123456789abcdefghijklmnopqrstuvwxyz'
const OTHER_TOKEN = 'gho_zyxwvutsrqponmlkjihgfedcba9876543210'

let home: string
const models: ScriptedModel[] = []
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'home-access-')))
  await mkdir(join(home, 'project'))
  await mkdir(join(home, '.config/gh'), { recursive: true })
  await mkdir(join(home, '.openhands'))
  await writeFile(join(home, '.npmrc'), `//registry.example.com/:_authToken=${TOKEN}\nfund=false\n`)
  await writeFile(join(home, '.config/gh/hosts.yml'), `github.com:\n    user: ada\n    oauth_token: ${OTHER_TOKEN}\n`)
  await writeFile(join(home, '.private'), 'not for agents\n')
})
afterEach(async () => {
  for (const model of models.splice(0)) await model.close()
  await rm(home, { recursive: true, force: true })
})

type Call = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }
const bash = (command: string): Call => ({ name: 'Bash', arguments: { command } })

async function environmentFor(calls: readonly Call[]): Promise<Record<string, string>> {
  const turns = [...calls.map((call) => ({ calls: [call] })), { text: 'Done.' }]
  const model = await startScriptedModel({ replies: [{ turns }] })
  models.push(model)
  const settings = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test' }
  return { HOME: home, OPENHANDS_DATA_DIR: join(home, 'data'), ...settings }
}

const ARGUMENTS = ['-p', '--permission-mode', 'bypass', '--output-format', 'stream-json']

async function prompt(
  calls: readonly Call[],
  options: readonly string[] = [],
  more: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const env = { ...(await environmentFor(calls)), ...more }
  return await runCommand([...ARGUMENTS, ...options, 'go'], { cwd: join(home, 'project'), env })
}

/** The texts of what the calls have returned. */
function results({ stdout }: Finished): string[] {
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; output?: unknown })
  return events.flatMap(({ type, output }) => (type === 'ToolResult' ? [JSON.stringify(output)] : []))
}

const idIn = (text: string): string => /conversation (\S+) in/.exec(text)?.[1] ?? ''

test('an agent sees nothing of the home that the person has not named', async () => {
  const finished = await prompt([bash('cat ~/.npmrc; cat ../.npmrc; ls -A ..')])
  expect(results(finished)[0]).toMatch(/No such file.*No such file/s)
  expect(finished.stdout).not.toMatch(/authToken|\.private/)
})

test('an agent reads what the person names, cannot change it, and never shows the tokens in it', async () => {
  const options = ['--home-readable', '~/.npmrc', '--home-readable', join(home, '.config/gh')]
  const finished = await prompt(
    [
      bash('cat ~/.npmrc ../.npmrc; cat ~/.config/gh/hosts.yml; base64 -w0 ~/.npmrc'),
      bash('echo x >>~/.npmrc; echo x >~/.config/gh/new; rm ../.npmrc; cat ../.private'),
      { name: 'FileEditor', arguments: { command: 'view', path: join(home, '.npmrc') } },
      { name: 'FileEditor', arguments: { command: 'view', path: join(home, '.private') } },
      {
        name: 'FileEditor',
        arguments: { command: 'str_replace', path: join(home, '.npmrc'), old_str: 'fund=false', new_str: 'fund=true' },
      },
    ],
    options,
  )
  const [shown, changed, viewed, hidden, edited] = results(finished)
  expect(shown).toMatch(
    /_authToken=<secret:~\/\.npmrc>.*_authToken=<secret.*oauth_token: <secret:~\/\.config\/gh\/hosts\.yml>/s,
  )
  expect(changed).toMatch(/Read-only.*Read-only.*\.private: No such file/s)
  expect(viewed).toContain('_authToken=<secret:~/.npmrc>')
  expect(hidden).toContain('not accessible')
  expect(edited).toContain('can be viewed, but not changed')
  expect(finished.stdout + finished.stderr).not.toMatch(new RegExp(`${TOKEN}|${OTHER_TOKEN}`))
  expect(finished.stderr).toContain('the agent can read ~/.npmrc, ~/.config/gh.')
  expect(await readFile(join(home, '.npmrc'), 'utf8')).toContain('fund=false')
})

test('the settings file of the person names paths, and a settings file in the project does not', async () => {
  const sandbox = { sandbox: { home_readable: ['~/.npmrc', '~/.missing'] } }
  await mkdir(join(home, 'project/.openhands'))
  for (const path of ['project/.openhands/settings_sdk.json', 'project/.openhands/settings.json', 'project/.mcp.json'])
    await writeFile(join(home, path), JSON.stringify(sandbox))
  await writeFile(join(home, 'project/.env'), 'OPENHANDS_HOME_READABLE=~/.npmrc\n')
  expect(results(await prompt([bash('cat ~/.npmrc')]))[0]).toContain('No such file')
  await writeFile(join(home, '.openhands/settings_sdk.json'), JSON.stringify(sandbox))
  const finished = await prompt([bash('cat ~/.npmrc')])
  expect(results(finished)[0]).toContain('<secret:~/.npmrc>')
  expect(finished.stderr).toContain('home_readable of the settings file: ~/.missing does not exist.')
})

test.each([
  ['~/.missing', /~\/\.missing does not exist/],
  ['~/outside', /~\/outside leads to \/etc\/passwd, which is not in the home/],
  ['/etc/passwd', /\/etc\/passwd leads to \/etc\/passwd, which is not in the home/],
  ['~/project/../..', /which is not in the home/],
  ['~', /~ is the whole home/],
  ['.npmrc', /\.npmrc is not a path in the home; write it as ~/],
  ['~/data', /~\/data stays hidden: agents never see .*\/data/],
  ['~/.openhands/settings_sdk.json', /settings_sdk.json stays hidden/],
  ['~/project/link', /leads through the link .*\/project\/link, which an agent may have made/],
  ['~/two-links', /leads through the link .*\/project\/link, which an agent may have made/],
  ['~/many', /~\/many is not shown, because ~\/many has more than 1024 values that may be secret/],
])('the path %s is refused before anything is sent', async (path, why) => {
  await symlink('/etc/passwd', join(home, 'outside'))
  await symlink('../.private', join(home, 'project/link'))
  await symlink('project/link', join(home, 'two-links'))
  await writeFile(join(home, 'many'), Array.from({ length: 1025 }, (_, at) => `token=value-${at}`).join('\n'))
  await writeFile(join(home, '.openhands/settings_sdk.json'), '{"api_key": "sk-of-a-person"}', { mode: 0o600 })
  const { code, stderr } = await prompt([], ['--home-readable', path])
  expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
})

test('a link in an additional directory is one that an agent may have made, too', async () => {
  await mkdir(join(home, 'notes'))
  await symlink('../.private', join(home, 'notes/link'))
  const options = ['--add-dir', join(home, 'notes'), '--home-readable', '~/notes/link']
  const { code, stderr } = await prompt([], options)
  expect([code, stderr]).toEqual([2, expect.stringMatching(/leads through the link .*\/notes\/link/)])
})

test('a link inside of the home shows the file that it leads to, under its own name', async () => {
  await mkdir(join(home, 'dotfiles'))
  await writeFile(join(home, 'dotfiles/yarnrc'), `npmAuthToken: "${TOKEN}"\n`)
  await symlink('dotfiles/yarnrc', join(home, '.yarnrc.yml'))
  const finished = await prompt([bash('cat ~/.yarnrc.yml; ls ../dotfiles')], ['--home-readable', '~/.yarnrc.yml'])
  expect(results(finished)[0]).toMatch(/npmAuthToken: \\\\?"<secret:~\/\.yarnrc\.yml>.*No such file/s)
})

test('a shown directory with the settings file, or with a link to other files of the home, shows neither', async () => {
  const key = '{"api_key": "sk-of-a-person"}'
  await writeFile(join(home, '.openhands/settings_sdk.json'), key, { mode: 0o600 })
  await symlink('../.private', join(home, '.openhands/link'))
  const view = (path: string) => ({ name: 'FileEditor', arguments: { command: 'view', path: join(home, path) } })
  const calls = [
    bash('cat ../.openhands/*; ls -A ../.openhands'),
    view('.openhands/settings_sdk.json'),
    view('.openhands/link'),
  ]
  const finished = await prompt(calls, ['--home-readable', '~/.openhands'])
  expect(results(finished)[0]).toMatch(/settings_sdk/)
  expect(finished.stdout).not.toMatch(/sk-of-a-person|not for agents/)
})

test('a directory that becomes a link during the conversation shows nothing of where it leads', async () => {
  const cwd = join(home, 'project')
  for (const name of ['shared', 'other']) await mkdir(join(home, name))
  await writeFile(join(home, 'other/file'), 'not for agents\n')
  const view = { name: 'FileEditor', arguments: { command: 'view', path: join(home, 'shared/file') } }
  const restart = { name: 'Bash', arguments: { command: '', restart: true } }
  const calls = [bash('echo >ready; until [ -e go ]; do sleep 0.05; done'), view, restart, bash('cat ../shared/file')]
  const env = await environmentFor(calls)
  const { finished } = startCommand([...ARGUMENTS, '--home-readable', '~/shared', 'go'], { cwd, env })
  await expect.poll(() => readFile(join(cwd, 'ready'), 'utf8').catch(() => undefined)).toBe('\n')
  await rename(join(home, 'shared'), join(home, 'shared.moved'))
  await symlink('other', join(home, 'shared'))
  await writeFile(join(cwd, 'go'), '')
  const [, viewed, , shown] = results(await finished)
  expect([viewed, shown]).toEqual([expect.stringContaining('not accessible'), expect.stringContaining('No such file')])
})

test('deny rules hold for what the person names, under each name that a file has', async () => {
  await mkdir(join(home, 'dotfiles'))
  await writeFile(join(home, 'dotfiles/npmrc'), 'fund=false\n')
  await rm(join(home, '.npmrc'))
  await symlink('dotfiles/npmrc', join(home, '.npmrc'))
  await mkdir(join(home, 'project/.claude'))
  const permissions = { deny: ['Read(~/.npmrc)', 'Read(~/.config/gh/**)'] }
  await writeFile(join(home, 'project/.claude/settings.json'), JSON.stringify({ permissions }))
  const view = (path: string) => ({ name: 'FileEditor', arguments: { command: 'view', path } })
  const calls = [
    bash('cat ~/.npmrc'),
    bash('cat ../.npmrc'),
    bash('cat ~/.config/gh/hosts.yml'),
    view(join(home, '.npmrc')),
    view(join(home, 'dotfiles/npmrc')),
    view(join(home, '.config/gh/hosts.yml')),
  ]
  const finished = await prompt(calls, ['--home-readable', '~/.npmrc', '--home-readable', '~/.config/gh'])
  expect(finished.stdout).not.toMatch(/fund=false|user: ada/)
  expect(results(finished)).toEqual(calls.map(() => expect.stringMatching(/(The|deny) rule .*(denies|holds)/)))
})

test('a token that comes into the file during the conversation is redacted, and the one before as well', async () => {
  const wait = 'cat ~/.npmrc >kept; echo >ready; until grep -q changed ~/.npmrc; do sleep 0.05; done; cat ~/.npmrc kept'
  const env = await environmentFor([bash(wait)])
  const cwd = join(home, 'project')
  const { finished } = startCommand([...ARGUMENTS, '--home-readable', '~/.npmrc', 'go'], { cwd, env })
  await expect.poll(() => readFile(join(cwd, 'ready'), 'utf8').catch(() => undefined)).toBe('\n')
  await writeFile(join(home, '.npmrc'), `//registry.example.com/:_authToken=${OTHER_TOKEN}\n; changed\n`)
  const all = await finished
  expect(results(all)[0]).toMatch(/_authToken=<secret:~\/\.npmrc>.*changed.*_authToken=<secret:~\/\.npmrc>/s)
  expect(all.stdout).not.toMatch(new RegExp(`${TOKEN}|${OTHER_TOKEN}`))
})

test('it holds for the command alone: one that resumes the conversation without it sees nothing', async () => {
  const env = await environmentFor([bash('cat ~/.npmrc; echo mine >~/.npmrc; cat ~/.npmrc')])
  const run = (...options: string[]) =>
    runCommand([...ARGUMENTS, ...options, 'go'], { cwd: join(home, 'project'), env })
  const first = await run('--home-readable', '~/.npmrc')
  expect(results(first)[0]).toMatch(/<secret.*Read-only/s)
  const again = await run('-r', idIn(first.stderr))
  expect(results(again)[0]).toMatch(/No such file/)
  expect(results(again)[0]).toContain('mine')
})

test('a command whose agents run in the process of another one has its own paths', async () => {
  const cwd = join(home, 'project')
  const waits = [bash('echo >ready; until [ -e go ]; do sleep 0.05; done; cat ~/.npmrc')]
  const first = startCommand([...ARGUMENTS, 'go'], { cwd, env: await environmentFor(waits) })
  await expect.poll(() => readFile(join(cwd, 'ready'), 'utf8').catch(() => undefined)).toBe('\n')
  const second = await prompt([bash('cat ~/.npmrc; echo >go')], ['--home-readable', '~/.npmrc'])
  expect(results(second)[0]).toContain('<secret:~/.npmrc>')
  expect(results(await first.finished)[0]).toContain('No such file')
})

describe('an ssh agent', () => {
  let socket: string
  let agent: ChildProcess
  beforeEach(async () => {
    await mkdir(join(home, '.ssh'), { mode: 0o700 })
    await writeFile(join(home, '.ssh/known_hosts'), 'example.com ssh-ed25519 AAAA\n')
    // A path of a socket is short.
    socket = join(await realpath(await mkdtemp('/tmp/agent-')), 'socket')
    agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' })
    await expect.poll(() => existsSync(socket)).toBe(true)
    const key = join(home, '.ssh/id_ed25519')
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'key of ada', '-f', key])
    execFileSync('ssh-add', ['-q', key], { env: { ...process.env, SSH_AUTH_SOCK: socket } })
  })
  afterEach(async () => {
    agent.kill()
    await rm(dirname(socket), { recursive: true, force: true })
  })

  const LIST = bash('ssh-add -l; cat ../.ssh/known_hosts; cat ../.ssh/id_ed25519')

  test('of the person signs for the agent, which sees the known hosts, and neither the keys nor another socket', async () => {
    const own = { SSH_AUTH_SOCK: socket }
    const sockets = bash('for path in $(find /run /tmp); do [ -S $path ] && echo $path; done; true')
    const finished = await prompt([LIST, sockets], ['--ssh-agent'], own)
    const [listed, found] = results(finished)
    expect(listed).toMatch(/key of ada.*example\.com ssh-ed25519.*id_ed25519: No such file/s)
    expect(found).toContain('"stdout":"/run/ssh-agent\\n"')
    expect(finished.stderr).toContain('the agent can read ~/.ssh/known_hosts, and use your ssh agent.')
    await writeFile(join(home, '.openhands/settings_sdk.json'), '{"sandbox": {"ssh_agent": true}}')
    expect(results(await prompt([LIST], [], own))[0]).toContain('key of ada')
    const unsandboxed = await prompt([LIST], [], { ...own, OPENHANDS_ISOLATION: 'none' })
    expect(results(unsandboxed)[0]).toContain('key of ada')
  })

  test('is not reached unless the person says so', async () => {
    const own = { SSH_AUTH_SOCK: socket }
    expect(results(await prompt([LIST], [], own))[0]).toMatch(/Could not open a connection.*known_hosts: No such file/s)
    const unsandboxed = await prompt([LIST], [], { ...own, OPENHANDS_ISOLATION: 'none' })
    expect(results(unsandboxed)[0]).toContain('Could not open a connection')
  })

  test('that is not there is an error of the option, and a line for the settings file', async () => {
    for (const [SSH_AUTH_SOCK, why] of [
      ['', /SSH_AUTH_SOCK is not set/],
      [join(home, 'gone'), /there is no ssh agent at .*gone/],
      [join(home, '.npmrc'), /there is no ssh agent at .*npmrc/],
    ] as const) {
      const { code, stderr } = await prompt([], ['--ssh-agent'], { SSH_AUTH_SOCK })
      expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
    }
    await writeFile(join(home, '.openhands/settings_sdk.json'), '{"sandbox": {"ssh_agent": true}}')
    const finished = await prompt([LIST])
    expect(finished.stderr).toContain('SSH_AUTH_SOCK is not set')
    expect(results(finished)[0]).toContain('Could not open a connection')
  })
})

describe('the package cache', () => {
  /** A registry of one package, which counts how often it is downloaded. */
  async function startRegistry() {
    await mkdir(join(home, 'package'))
    await writeFile(join(home, 'package/package.json'), '{"name": "example-package", "version": "1.0.0"}')
    execFileSync('tar', ['-czf', 'package.tgz', 'package'], { cwd: home })
    const tarball = await readFile(join(home, 'package.tgz'))
    const counted = { downloads: 0 }
    const server = createServer(({ url }, response) => {
      if (url?.endsWith('.tgz')) {
        counted.downloads++
        return response.end(tarball)
      }
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
      const dist = { integrity, tarball: `${registry}/example-package/-/example-package-1.0.0.tgz` }
      const version = { name: 'example-package', version: '1.0.0', dist }
      const tags = { 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
      return response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ name: 'example-package', ...tags }))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { registry, counted, [Symbol.asyncDispose]: async () => server.close().closeAllConnections() }
  }

  const install = (registry: string) =>
    bash(
      `rm -rf node_modules; npm install --no-save --no-audit --registry ${registry} example-package && ls node_modules`,
    )

  test('has what another conversation has downloaded, and nothing of the person', async () => {
    await using npm = await startRegistry()
    await mkdir(join(home, '.npm'))
    const first = await prompt([install(npm.registry)], ['--package-cache'])
    const again = await prompt([install(npm.registry)], ['--package-cache'])
    expect([results(first)[0], results(again)[0]].every((text) => text?.includes('example-package'))).toBe(true)
    expect(npm.counted.downloads).toBe(1)
    expect(await readdir(join(home, '.npm'))).toEqual([])
    // Without the option each conversation has its own.
    await prompt([install(npm.registry)])
    expect(npm.counted.downloads).toBe(2)
  })

  const CACHES = ['.npm/_cacache', '.cache/pip', '.cargo/registry', '.cargo/git'].map((name) => `~/${name}`).join(' ')
  const write = bash(`for cache in ${CACHES}; do mkdir -p $cache; echo shared >$cache/file; done`)
  const read = bash(`for cache in ${CACHES}; do mkdir -p $cache; cat $cache/file; done`)
  const settings = '{"sandbox": {"package_cache": true}}'

  test('is for downloads: settings and programs stay in the conversation, and no cache becomes a link', async () => {
    await writeFile(join(home, '.openhands/settings_sdk.json'), settings)
    await prompt([
      write,
      bash('mkdir -p ~/.cargo/bin ~/.npm/_npx; echo own | tee ~/.cargo/config.toml ~/.npm/_npx/file'),
    ])
    const link = bash(
      'cd ~/.cargo; rm -r $(readlink registry); ln -s /etc $(readlink registry); echo x >$(readlink registry)/../x',
    )
    const finished = await prompt([
      read,
      link,
      bash('cat ~/.cargo/config.toml ~/.npm/_npx/file; ls ~/.cargo/registry/'),
    ])
    const [shared, replaced, own] = results(finished)
    expect(shared?.match(/shared/g)).toHaveLength(4)
    expect(replaced).toMatch(/(busy|Read-only).*Read-only/s)
    expect(own).toMatch(/config\.toml: No such file.*_npx\/file: No such file/s)
    expect(own).not.toContain('passwd')
  })

  test('of one directory is not that of another: what an agent puts there, no other project installs', async () => {
    await prompt([write], ['--package-cache'])
    await mkdir(join(home, 'project/inside'))
    await mkdir(join(home, 'other'))
    for (const cwd of [join(home, 'project/inside'), join(home, 'other')]) {
      const finished = await prompt([read], ['--package-cache', '--cwd', cwd])
      expect(results(finished)[0]).toContain('No such file')
      expect(results(finished)[0]).not.toContain('shared')
    }
  })

  test.each([
    ['is off', 'in a conversation whose network is not open', { OPENHANDS_NETWORK: 'none' }],
    ['is off', 'with a limit of the disk', { OPENHANDS_LIMIT_DISK: '1G' }],
    ['is off', 'without a sandbox', { OPENHANDS_ISOLATION: 'none' }],
  ])('%s %s', async (_, __, more) => {
    await prompt([write], ['--package-cache'])
    const finished = await prompt([read], ['--package-cache'], more)
    expect(results(finished)[0]).toContain('No such file')
    expect(results(finished)[0]).not.toContain('shared')
  })
})

test('a server for others shows nothing, also to a command of the same user', async () => {
  await using server = await startServer({ env: { HOME: home } })
  const more = { OPENHANDS_DATA_DIR: server.dataDir }
  const { code, stderr } = await prompt([], ['--home-readable', '~/.npmrc'], more)
  expect([code, stderr]).toEqual([2, expect.stringContaining('shows no agent your home')])
  await writeFile(join(home, '.openhands/settings_sdk.json'), '{"sandbox": {"home_readable": ["~/.npmrc"]}}')
  const finished = await prompt([bash('cat ~/.npmrc')], [], more)
  expect(results(finished)[0]).toContain('No such file')
  expect(finished.stderr).toContain('sandbox of the settings file has no effect')
  const { id } = (await server.call('POST', '/conversations', { llm_config: { model: 'none' } })).body
  const npmrc = join(home, '.npmrc')
  await using grants = new HomeGrants(server.dataDir, { home, readable: [{ at: npmrc, real: npmrc }] })
  await grants.open(id)
  const { body } = await server.call('POST', `/conversations/${id}/commands`, { command: `cat ~/.npmrc ${npmrc}` })
  expect(body.stderr).toMatch(/No such file.*No such file/s)
})

test('without a sandbox an agent reads all files, and the tokens in those that the person names are redacted', async () => {
  const more = { OPENHANDS_ISOLATION: 'none' }
  const finished = await prompt([bash('cat ~/.npmrc ~/.private')], ['--home-readable', '~/.npmrc'], more)
  expect(results(finished)[0]).toMatch(/_authToken=<secret:~\/\.npmrc>.*not for agents/s)
})

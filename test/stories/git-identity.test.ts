/** Commits of agents on the machine of a person have the person's name; those of a server have none. */
import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { runCommand } from '../support/command.ts'
import { startServer } from '../support/server.ts'

const GITCONFIG = '[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n[alias]\n\tsteal = !true\n'

/** Says whether an alias of the person's own configuration is there. */
const COMMIT = 'git commit -q --allow-empty -m One; git config alias.steal || echo no alias'

let home: string
let model: ScriptedModel
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'git-identity-')))
  await writeFile(join(home, '.gitconfig'), GITCONFIG)
  const calls = [{ name: 'Bash', arguments: { command: COMMIT } }]
  model = await startScriptedModel({ replies: [{ turns: [{ calls }, { text: 'Done.' }] }] })
})
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

async function newRepository(name: string): Promise<string> {
  const directory = join(home, name)
  await mkdir(directory)
  execFileSync('git', ['init', '-q'], { cwd: directory })
  return directory
}

/** Author and committer of the last commit. */
const namesIn = (cwd: string) =>
  execFileSync('git', ['log', '-1', '--format=%an <%ae>, %cn <%ce>'], { cwd, encoding: 'utf8' }).trim()

async function commit(cwd: string, own: Record<string, string> = {}) {
  const env = { HOME: home, LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test', ...own }
  const data = { OPENHANDS_DATA_DIR: join(home, 'data') }
  const args = ['-p', '--permission-mode', 'bypass', '--output-format', 'stream-json', 'commit']
  return await runCommand(args, { cwd, env: { ...env, ...data } })
}

test('an agent commits with the name of the person, without the other settings of the person', async () => {
  const repository = await newRepository('plain')
  const { code, stdout } = await commit(repository)
  expect([code, namesIn(repository)]).toEqual([0, 'Ada Lovelace <ada@example.com>, Ada Lovelace <ada@example.com>'])
  expect(stdout).toContain('no alias')
})

test('the settings of a repository, and the environment, take precedence as they do in git', async () => {
  const repository = await newRepository('work')
  execFileSync('git', ['config', 'user.email', 'ada@work.example.com'], { cwd: repository })
  await commit(repository, { GIT_COMMITTER_NAME: 'Ada at the keyboard' })
  expect(namesIn(repository)).toBe('Ada Lovelace <ada@work.example.com>, Ada at the keyboard <ada@work.example.com>')
})

test('a repository inside of the workdir has its own identity', async () => {
  const outer = await newRepository('outer')
  execFileSync('git', ['config', 'user.email', 'ada@outer.example.com'], { cwd: outer })
  execFileSync('git', ['init', '-q', 'inner'], { cwd: outer })
  const inner = join(outer, 'inner')
  execFileSync('git', ['config', 'user.email', 'ada@inner.example.com'], { cwd: inner })
  const calls = [{ name: 'Bash', arguments: { command: `cd inner; ${COMMIT}` } }]
  await using inside = await startScriptedModel({ replies: [{ turns: [{ calls }, { text: 'Done.' }] }] })
  await commit(outer, { LLM_BASE_URL: inside.baseUrl })
  expect(namesIn(inner)).toMatch(/^Ada Lovelace <ada@inner\.example\.com>, /)
})

test('the file of the person for this directory counts, and the agent can choose another name', async () => {
  const client = await newRepository('client')
  await appendFile(join(home, '.gitconfig'), `[includeIf "gitdir:~/client/"]\n\tpath = .client\n`)
  await writeFile(join(home, '.client'), '[user]\n\temail = ada@client.example.com\n')
  await commit(client)
  expect(namesIn(client)).toMatch(/^Ada Lovelace <ada@client\.example\.com>, /)
  const command = `git config --global user.name Bot; ${COMMIT}`
  await using bot = await startScriptedModel({
    replies: [{ turns: [{ calls: [{ name: 'Bash', arguments: { command } }] }, { text: 'Done.' }] }],
  })
  await commit(client, { LLM_BASE_URL: bot.baseUrl })
  expect(namesIn(client)).toMatch(/^Bot <ada@client\.example\.com>, /)
})

test('a server for others gives nobody the name of its user', async () => {
  await using server = await startServer({ env: { HOME: home } })
  const { id } = (await server.call('POST', '/conversations', { llm_config: { model: 'none' } })).body
  const command = `git init -q; env | grep -cE '^GIT_(AUTHOR|CONFIG)'; ${COMMIT}`
  const { body } = await server.call('POST', `/conversations/${id}/commands`, { command })
  expect(body.stdout).toMatch(/^0\n/)
})

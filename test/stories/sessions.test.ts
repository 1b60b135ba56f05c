/** The conversations of a person on the command line: what they are called, and how they are found, renamed and removed. */
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startCommand } from '../support/command.ts'
import { hasFiles, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

let home: string
let model: ScriptedModel
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'sessions-')))
  for (const name of ['proj', 'other']) await mkdir(join(home, name))
  model = await startScriptedModel({
    replies: [
      { when: 'touch it', turns: [{ calls: [{ name: 'Bash', arguments: { command: 'touch it' } }] }] },
      ...['one', 'two'].map((word) => ({
        when: `write ${word}`,
        turns: [{ calls: [{ name: 'Bash', arguments: { command: `echo ${word} > notes.txt` } }] }, { text: 'Done.' }],
      })),
      { turns: [{ text: 'Hello.' }] },
    ],
  })
})
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

function start(directory: string, more: Record<string, string>, ...args: string[]) {
  const env = { HOME: home, LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'sk-test' }
  const data = { OPENHANDS_DATA_DIR: join(home, 'data'), ...more }
  return startCommand(args, { cwd: join(home, directory), env: { ...env, ...data } })
}

const command = (directory: string, ...args: string[]) => start(directory, {}, ...args).finished

const idIn = (stderr: string) => /conversation (\S+) in/.exec(stderr)![1]!

const rowsOf = async (...args: string[]) =>
  (await command('proj', 'sessions', 'list', ...args)).stdout.split('\n').filter(Boolean)

test('a session is called by its first message, found by text and directory, renamed, and pruned by age', async () => {
  const first = idIn((await command('proj', '-p', 'Fix the\n  flaky test of the parser')).stderr)
  const labels = ['--label', 'docs', '--label', 'release, next']
  const second = idIn((await command('other', '-p', ...labels, 'Write the changelog')).stderr)
  // What is new now is a minute old later.
  const ofAnyAge = (row: string) => row.replace(/ +(?:now|\d+m) +/, ' ')
  const found = async (...args: string[]) => (await rowsOf(...args)).map(ofAnyAge)
  const listed = await rowsOf()
  expect(listed).toEqual([
    expect.stringMatching(new RegExp(String.raw`^${second} +(?:now|\d+m) +idle +other +Write the changelog$`)),
    expect.stringMatching(
      new RegExp(String.raw`^${first} +(?:now|\d+m) +idle +proj +Fix the flaky test of the parser$`),
    ),
  ])
  const rows = listed.map(ofAnyAge)
  expect(await found('--search', 'FLAKY')).toEqual([rows[1]])
  expect(await found(...labels)).toEqual([rows[0]])
  expect(await rowsOf('--label', 'docs', '--label', 'other')).toEqual([])
  expect((await command('proj', '-p', '-r', first, '--label', 'parser', 'Go on')).code).toBe(0)
  expect((await command('proj', 'sessions', 'show', first)).stdout).toContain('Labels        parser')
  for (const path of [join(home, 'other'), '../other']) expect(await found('--cwd', path)).toEqual([rows[0]])
  expect(await found('--cwd', '.')).toEqual([rows[1]])

  expect((await command('proj', 'sessions', 'rename', first.slice(-12), 'The', 'parser')).stderr).toBe(
    `Renamed ${first}.\n`,
  )
  expect((await rowsOf('--search', 'The parser'))[0]).toMatch(/proj +The parser$/)
  expect((await command('proj', 'sessions', 'show', first.slice(-12))).stdout).toContain('Title         The parser')

  expect((await command('proj', 'sessions', 'prune', '--older-than', '1h')).stderr).toBe('Deleted 0 conversations.\n')
  expect(await rowsOf()).toHaveLength(2)
})

/** Moves all events of a conversation a year into the past. */
async function age(id: string, data = join(home, 'data')): Promise<void> {
  const session = join(data, 'sessions', id)
  const log = join(session, 'events.jsonl')
  const year = new Date().getFullYear()
  const text = await readFile(log, 'utf8')
  await writeFile(log, text.replaceAll(`"timestamp":"${year}`, `"timestamp":"${year - 1}`))
  await rm(join(session, 'meta.json'), { force: true })
}

test('prune deletes what is older, only of the directory if one is named, and never what waits for an answer', async () => {
  const old = idIn((await command('proj', '-p', 'old one')).stderr)
  const elsewhere = idIn((await command('other', '-p', 'old one elsewhere')).stderr)
  const young = idIn((await command('proj', '-p', 'young one')).stderr)
  const asking = start('proj', {}, '-p', '--ask', 'clients', 'touch it')
  await asking.said('waits for a decision')
  asking.child.kill('SIGKILL')
  const waiting = idIn((await asking.finished).stderr)
  for (const id of [old, elsewhere, waiting]) await age(id)
  const left = async () => (await rowsOf()).map((row) => row.slice(0, old.length))
  const prune = (...args: string[]) => command('proj', 'sessions', 'prune', '--older-than', '300d', ...args)
  expect((await prune('--cwd', '.')).stderr).toBe('Deleted 1 conversation.\n')
  expect(await left()).toEqual(expect.arrayContaining([young, elsewhere, waiting]))
  expect(await left()).not.toContain(old)
  expect((await prune()).stderr).toBe('Deleted 1 conversation.\n')
  expect(await left()).toEqual(expect.arrayContaining([young, waiting]))
  expect(await left()).not.toContain(elsewhere)
})

test.runIf(hasFiles)('prune does not delete what waits for an answer while it is paused', async () => {
  await using server = await startServer({ env: { HOME: home } })
  const { dataDir: data, call } = server
  const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'sk-test' }
  const { id } = (await call('POST', '/conversations', { llm_config, permission_mode: 'default' })).body
  const path = `/conversations/${id}`
  await call('POST', `${path}/messages`, { message: { role: 'user', content: 'touch it' }, run: true })
  await until('a request', async () => (await call('GET', `${path}/requests`)).body.items.length > 0)
  expect((await call('POST', `${path}/pause`)).body).toEqual({ status: 'paused' })
  await server.stop()
  await age(id, data)
  const command = (...args: string[]) => start('proj', { OPENHANDS_DATA_DIR: data }, 'sessions', ...args).finished
  expect((await command('prune', '--older-than', '300d')).stderr).toBe('Deleted 0 conversations.\n')
  expect((await command('list')).stdout).toMatch(new RegExp(`^${id} +365d +paused `))
})

test('-p --rewind takes a stored session and its files back, and says before what would change', async () => {
  const directory = join(home, 'rewound')
  await mkdir(directory)
  const run = ['-p', '--permission-mode', 'bypass']
  const id = idIn((await command('rewound', ...run, 'write one')).stderr)
  await command('rewound', ...run, '--resume', id, 'write two')
  const notes = () => readFile(join(directory, 'notes.txt'), 'utf8')
  expect(await notes()).toBe('two\n')
  const events = (await command('rewound', 'sessions', 'export', id)).stdout.trim().split('\n')
  const message = events.map((line) => JSON.parse(line)).findLast(({ type }) => type === 'UserMessage')
  const back = ['-p', '-c', '--rewind', message.id]
  const plan = await command('rewound', ...back, '--dry-run')
  expect(plan).toMatchObject({
    code: 0,
    stdout: `The conversation would go back to event ${message.seq - 1}.\nwould be restored: notes.txt\n`,
  })
  expect(await notes()).toBe('two\n')
  await writeFile(join(directory, 'notes.txt'), 'by hand\n')
  const refused = await command('rewound', ...back)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('notes.txt') })
  expect(await notes()).toBe('by hand\n')
  const done = await command('rewound', ...back, '--force')
  expect(done.stdout).toBe(`The conversation is back at event ${message.seq - 1}.\nrestored: notes.txt\n`)
  expect(await notes()).toBe('one\n')
  const wrong = await command('rewound', '-p', '-c', '--rewind', 'nothing')
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('neither a seq nor the id of a message') })
})

/** Two servers on one database and one shared directory: what a conversation has at its next instance, and what is refused. */
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'

const LONG = 'seq 1 20000'
const script = {
  replies: [
    {
      when: 'First',
      turns: [bash('export WHO=me; mkdir sub; cd sub; echo note > ~/note'), bash(LONG), { text: 'Done.' }],
    },
    { when: 'Then', turns: [bash('echo $WHO; pwd; cat ~/note'), { text: 'Done.' }] },
    { when: 'Change', turns: [bash('echo new >a; rm -f b'), { text: 'Done.' }] },
    { when: 'Look', turns: [bash('ls -R "$(dirname "$(dirname "$PWD")")"'), { text: 'Done.' }] },
    { turns: [{ text: 'Done.' }] },
  ],
}

let database: TestDatabase
let place: string
let env: Record<string, string>
let stage: Stage
let next: TestServer

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'shared-directory-'))
  database = await createDatabase()
  env = {
    OPENHANDS_DATABASE_URL: database.url,
    OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:0',
    OPENHANDS_SHARED_DIR: join(place, 'shared'),
  }
  stage = await setStage(script, { env })
  next = await startServer({ env })
})
afterAll(async () => {
  await next[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(place, { recursive: true })
})

const createAtNext = (settings: object = {}) =>
  next.call('POST', '/conversations', {
    llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' },
    ...settings,
  })
const runAt = async (server: TestServer, path: string, content: string) => {
  await server.call('POST', `${path}/messages`, { message: { role: 'user', content } })
  return (await server.call('POST', `${path}/run`, { wait: true })).body
}
const last = async (path: string, type: string) =>
  (await next.call('GET', `${path}/events?types=${type}&order=desc&limit=1`)).body.items[0]

test('snapshots are compared and restored at the next instance, which continues them', async () => {
  const former = stage.server
  const path = `/conversations/${await stage.create({ file_checkpointing: true })}`
  const { workdir } = (await former.call('GET', path)).body
  await writeFile(join(workdir, 'a'), 'old\n')
  await writeFile(join(workdir, 'b'), 'kept\n')
  const { result } = await runAt(former, path, 'Change.')
  expect(result).toMatchObject({ changes: { files: 2, added: 1, removed: 2 } })
  expect(await former.stop('SIGTERM')).toBe(0)

  const { items } = (await next.call('GET', `${path}/diff?from=run`)).body
  expect(items.map(({ path, status }: { path: string; status: string }) => [path, status])).toEqual([
    ['a', 'modified'],
    ['b', 'deleted'],
  ])
  const rewind = { to_seq: 1, last_seq: (await next.call('GET', path)).body.last_seq, files: true, conversation: false }
  expect((await next.call('POST', `${path}/rewind`, rewind)).body.files).toMatchObject({
    changed: ['a', 'b'],
    failed: [],
  })
  expect(await readFile(join(workdir, 'a'), 'utf8')).toBe('old\n')
  expect(await readFile(join(workdir, 'b'), 'utf8')).toBe('kept\n')
  expect((await runAt(next, path, 'Change.')).result.changes).toEqual({ files: 2, added: 1, removed: 2 })
  await former.restart()
})

test('workdir, home, shell state and outputs are there at the next instance, and pipes are not shared', async () => {
  const former = stage.server
  const path = `/conversations/${await stage.create()}`
  const { isolation } = (await former.call('GET', '/info')).body
  expect((await runAt(former, path, 'First.')).result.stop_reason).toBe('completed')
  const { workdir } = (await former.call('GET', path)).body
  expect(workdir).toContain(join(place, 'shared', 'work'))
  const { full_output_path: output } = await last(path, 'ToolResult')
  expect(output).toContain(join(place, 'shared', 'sessions'))
  const names = await readdir(join(place, 'shared'), { recursive: true })
  expect(names.filter((name) => /\/shells\/.*std(in|out|err)-/.test(name))).toEqual([])

  const other = await stage.create()
  expect(await former.stop('SIGTERM')).toBe(0)
  expect((await runAt(next, path, 'Then.')).result.stop_reason).toBe('completed')
  const { stdout } = (await last(path, 'ToolResult')).output
  expect(stdout).toBe(`me\n${join(workdir, 'sub')}\nnote\n`)
  expect(existsSync(output)).toBe(true)
  expect(existsSync(join(former.dataDir, 'sessions', path.split('/').at(-1)!))).toBe(false)
  // In a sandbox, a conversation sees nothing of the others in the shared directory.
  expect((await runAt(next, path, 'Look.')).result.stop_reason).toBe('completed')
  const listed = (await last(path, 'ToolResult')).output.stdout
  if (isolation === 'bubblewrap') expect(listed).not.toContain(other)
})

test('a run without its workdir ends with the error workdir_missing, which says what to do', async () => {
  const created = await createAtNext()
  const path = `/conversations/${created.body.id}`
  await rm(created.body.workdir, { recursive: true })
  expect(await runAt(next, path, 'Hello.')).toMatchObject({
    status: 'error',
    error: { type: 'workdir_missing', message: expect.stringContaining('OPENHANDS_SHARED_DIR') },
  })
})

test('what needs snapshots that are on the disk of another instance is refused, and ends nothing', async () => {
  const path = `/conversations/${(await createAtNext({ file_checkpointing: true })).body.id}`
  expect((await runAt(next, path, 'Change.')).result.changes).toMatchObject({ files: 1 })
  const { id, last_seq } = (await next.call('GET', path)).body
  // After a run, what is not kept any more is removed, and the rest is noted: that may write into it meanwhile.
  await rm(join(place, 'shared', 'sessions', id, 'snapshots'), { recursive: true, maxRetries: 20 })
  const missing = {
    status: 404,
    body: { error: 'snapshot_not_found', message: expect.stringContaining('another instance') },
  }
  expect(await next.call('GET', `${path}/diff?from=run`)).toMatchObject(missing)
  expect(await next.call('GET', `${path}/files/a?at=${last_seq}`)).toMatchObject(missing)
  const rewind = { to_seq: 1, last_seq, files: true, force: true }
  expect(await next.call('POST', `${path}/rewind`, rewind)).toMatchObject(missing)
  expect((await next.call('GET', path)).body.last_seq).toBe(last_seq)
  // The first run notices what is missing, and the next one begins with a snapshot of what is there.
  await runAt(next, path, 'Change.')
  expect((await runAt(next, path, 'Change.')).result.changes).toMatchObject({ files: 0 })
  expect(await next.call('GET', `${path}/diff?from=run`)).toMatchObject({ status: 200, body: { files: 0 } })
})

test('the shared directory of another database is refused, and a server that is alone has none', async () => {
  await using other = await createDatabase()
  const wrong = { ...env, OPENHANDS_DATABASE_URL: other.url }
  await expect(startServer({ env: wrong, place })).rejects.toThrow('belongs to the instances of another database')
  const alone = { OPENHANDS_SHARED_DIR: join(place, 'shared') }
  await expect(startServer({ env: alone, place })).rejects.toThrow('needs OPENHANDS_CLUSTER_LISTEN')
})

/** Replays where several instances share a database: their originals, tables and forks, through either of two. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { Instance } from '../support/instance-faults.ts'
import { startInstances } from '../support/instance-faults.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const PRICES = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
const usage = { prompt_tokens: 100, completion_tokens: 10 }
/** While there is one, the model answers nothing: also to an instance that takes the replay over before the test goes on. */
let held: PromiseWithResolvers<void> | undefined
const hold = () => void (held = Promise.withResolvers())
const release = () => {
  held?.resolve()
  held = undefined
}
const script: Script = async ({ messages }) => {
  await held?.promise
  return messages.at(-1)?.role === 'tool' ? { text: 'Done.', usage } : { ...bash('echo line >> lines.txt'), usage }
}

let env: Record<string, string>
let place: string
let database: TestDatabase
let stage: Stage
let owner: TestServer
let asked: TestServer

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'replays-of-instances-'))
  database = await createDatabase()
  env = { ...instanceOn(database), OPENHANDS_SHARED_DIR: join(place, 'shared') }
  stage = await setStage(script, { env })
  owner = stage.server
  asked = await startServer({ env })
})
afterAll(async () => {
  for (const each of [asked, stage, database]) await each[Symbol.asyncDispose]()
  await rm(place, { recursive: true, force: true, maxRetries: 3 })
})

const create = (at: Stage = stage) => {
  const llm_config = { model: 'scripted', base_url: at.model.baseUrl, api_key: 'scripted-model-key', ...PRICES }
  return at.create({ llm_config, permission_mode: 'bypass', file_checkpointing: true })
}
const replay = (server: TestServer, id: string, headers = {}) =>
  server.call('POST', '/replays', { ...PLAN, conversation_ids: [id] }, headers)
/** Without a sandbox, no other network is possible. */
const PLAN = { permission_mode: 'bypass', network: { mode: 'open' }, max_cost_usd: 1 }
const ended = (server: TestServer, id: string) =>
  until('the end of the replay', async () => {
    const { body } = await server.call('GET', `/replays/${id}`)
    return body.status !== 'running' && body
  })
const idsIn = async (server: TestServer, list: string) =>
  (await server.call('GET', list)).body.items.map(({ id }: { id: string }) => id)
const OWNER = 'select i.pid from conversations c join incarnations i on i.id = c.owner where c.id = $1'

test('an instance replays what another one owns, with its files of that moment, and both show it once', async () => {
  const id = await create()
  await stage.say(id, 'first')
  await stage.say(id, 'second')
  const key = { 'idempotency-key': 'one-replay' }
  const posted = await replay(asked, id, key)
  expect(posted.status, JSON.stringify(posted.body)).toBe(201)
  const { rows } = await ended(owner, posted.body.id)
  expect(rows, JSON.stringify(rows)).toMatchObject([
    { outcome: 'completed', files: 'snapshot', from_conversation_id: id },
  ])
  expect(await database.query(OWNER, [id]), 'the original stays where it is').toEqual([{ pid: owner.pid }])
  const [{ conversation_id: fork }] = rows
  expect(await database.query(OWNER, [fork])).toEqual([{ pid: asked.pid }])
  const { workdir } = (await owner.call('GET', `/conversations/${fork}`)).body
  expect(await readFile(join(workdir, 'lines.txt'), 'utf8')).toBe('line\nline\n')
  for (const server of [owner, asked]) {
    expect(await idsIn(server, '/replays')).toEqual([posted.body.id])
    expect(await idsIn(server, '/conversations')).toEqual([id])
    expect((await replay(server, id, key)).body.id).toBe(posted.body.id)
  }
  const other = await replay(owner, id)
  const page = (await asked.call('GET', '/replays?limit=1')).body
  expect(page.items).toMatchObject([{ id: other.body.id }])
  expect(await idsIn(asked, `/replays?limit=1&page_id=${page.next_page_id}`)).toEqual([posted.body.id])
})

test('a replay is cancelled through another instance', async () => {
  const id = await create()
  await stage.say(id, 'first')
  hold()
  const { body } = await replay(asked, id)
  const cancelled = await owner.call('DELETE', `/replays/${body.id}`)
  release()
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
  expect((await owner.call('GET', '/replays/00000000-0000-4000-8000-000000000000')).body.error).toBe('replay_not_found')
})

test('of requests with one idempotency key that reach two instances at once, one makes a replay, and all return it', async () => {
  const id = await create()
  await stage.say(id, 'first')
  const key = { 'idempotency-key': 'at-once' }
  const posted = await Promise.all([owner, asked, owner, asked].map((server) => replay(server, id, key)))
  const made = posted.filter(({ status }) => status === 201)
  expect(posted.filter(({ status }) => status !== 201).map(({ body }) => body.error)).toEqual(
    Array.from({ length: 4 - made.length }, () => 'idempotency_in_flight'),
  )
  expect(new Set(made.map(({ body }) => body.id)).size).toBe(1)
  expect(await database.query('select count(*)::int from replays r where key = $1', ['at-once'])).toEqual([
    { count: 1 },
  ])
  const other = await asked.call('POST', '/replays', { ...PLAN, conversation_ids: [id], repeat: 2 }, key)
  expect(other.body.error).toBe('idempotency_mismatch')
  for (const { body } of made) await ended(asked, body.id)
})

test('a replay whose instance is killed is shown by the others, and one of them continues it and deletes its forks', async () => {
  const id = await create()
  await stage.say(id, 'first')
  await using third = await startServer({ env })
  hold()
  const plan = { ...PLAN, conversation_ids: [id], keep: 0 }
  const { body } = await third.call('POST', '/replays', plan, { 'idempotency-key': 'killed' })
  const [{ conversation_id: fork }] = body.rows
  await until('the run of the fork', async () => {
    const { body: view } = await owner.call('GET', `/conversations/${fork}`)
    return view.status === 'running'
  })
  await third.stop('SIGKILL')
  for (const server of [owner, asked]) {
    expect(await idsIn(server, '/replays')).toContain(body.id)
    expect((await server.call('GET', `/replays/${body.id}`)).body).toMatchObject({ status: 'running' })
    expect((await server.call('POST', '/replays', plan, { 'idempotency-key': 'killed' })).body.id).toBe(body.id)
  }
  release()
  const { status, rows } = await ended(asked, body.id)
  expect([status, rows]).toMatchObject(['completed', [{ status: 'completed', outcome: 'completed' }]])
  await until('the end of the fork', async () => (await asked.call('GET', `/conversations/${fork}`)).status === 410)
})

describe('the second one of two instances is killed', () => {
  const opened = new AsyncDisposableStack()
  let own: TestDatabase
  let at: Stage
  let first: Instance
  let second: TestServer
  let isKilled = false

  beforeAll(async () => {
    own = opened.use(await createDatabase())
    const its = await mkdtemp(join(place, 'left-'))
    const { stage: itsStage, instances } = await startInstances(2, { script, database: own, place: its }, opened)
    at = itsStage
    first = instances[0]!
    second = instances[1]!.server
  })
  afterAll(() => opened.disposeAsync())

  /** Leaves a replay of the second one whose fork runs. */
  async function leaveReplay() {
    if (isKilled) await second.restart()
    const id = await create(at)
    await at.say(id, 'first')
    hold()
    const { body } = await replay(second, id)
    const [{ conversation_id: fork }] = body.rows
    await until('the run of the fork', async () => {
      const { body: view } = await first.server.call('GET', `/conversations/${fork}`)
      return view.status === 'running'
    })
    await second.stop('SIGKILL')
    isKilled = true
    release()
    const endSecond = () => own.query('update incarnations set ended_at = now() where pid = $1', [second.pid])
    return { replayId: body.id as string, endSecond }
  }

  test('an instance continues a replay also if the answer of the database that gives it the replay is lost', async () => {
    const { replayId, endSecond } = await leaveReplay()
    const blocker = new Client({ connectionString: own.url })
    blocker.on('error', () => {}) // a test that fails drops the database
    await blocker.connect()
    await blocker.query('begin')
    await blocker.query('select from replays for update')
    await endSecond()
    const isWaiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%update replays%'"
    await until('the statement', async () => (await own.query(isWaiting)).length > 0)
    first.database.hold('answers')
    await blocker.query('commit')
    await blocker.end()
    const isAdopted = 'select from replays r join incarnations i on i.id = r.owner where i.pid = $1'
    await until('the new owner', async () => (await own.query(isAdopted, [first.server.pid])).length > 0)
    first.database.cut()
    first.database.up()
    expect((await ended(first.server, replayId)).status).toBe('completed')
  })

  test('a replay whose instance has just ended is cancelled by the instance that is asked', async () => {
    const { replayId, endSecond } = await leaveReplay()
    await endSecond()
    const { status, body } = await first.server.call('DELETE', `/replays/${replayId}`)
    expect([status, body.status], JSON.stringify(body)).toEqual([200, 'cancelled'])
  })
})

test('a replay that a newer version has written is in no list, and hides no other one', async () => {
  const id = await create()
  const { body } = await asked.call('POST', '/replays', { ...PLAN, at: 1, conversation_ids: [id] })
  await ended(asked, body.id)
  const newer = 'ffffffff-ffff-4fff-bfff-ffffffffffff'
  const copy = `insert into replays (id, owner, forks, record)
    select $1, owner, '{}', replace(record, '"completed"', '"from a newer version"') from replays where id = $2`
  await database.query(copy, [newer, body.id])
  for (const server of [owner, asked]) {
    expect(await idsIn(server, '/replays')).toContain(body.id)
    expect(await idsIn(server, '/replays?limit=1')).toEqual([body.id])
  }
  await database.query('delete from replays where id = $1', [newer])
})

test('a full disk of the database delays the end of a replay, which all instances show then', async () => {
  const id = await create()
  await stage.say(id, 'first')
  hold()
  const { body } = await replay(asked, id)
  await database.query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'full' using errcode = '53100'; end $$`)
  await database.query('create trigger refuse before update on replays for each row execute function refuse()')
  const cancelling = asked.call('DELETE', `/replays/${body.id}`)
  await until('the failed attempt', async () => asked.output().includes('the end of a replay is not stored yet'))
  release()
  await database.query('drop trigger refuse on replays')
  expect((await cancelling).status).toBe(507)
  expect((await ended(owner, body.id)).status).toBe('cancelled')
})

test('without a shared directory the problem says which instances can replay, and no address of one', async () => {
  await using own = await createDatabase()
  await using first = await setStage(script, { env: instanceOn(own) })
  await using second = await startServer({ env: instanceOn(own) })
  const id = await create(first)
  await first.say(id, 'first')
  const refused = await replay(second, id)
  expect([refused.status, refused.body.error]).toEqual([503, 'unavailable'])
  expect(refused.body.message).toContain('on the disk of another instance')
  expect(refused.body.message).not.toContain('127.0.0.1')
  expect((await replay(first.server, id)).status).toBe(201)
})

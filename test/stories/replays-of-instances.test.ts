/** Replays where several instances share a database: their originals, tables and forks, through either of two. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const PRICES = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
const usage = { prompt_tokens: 100, completion_tokens: 10 }
let isHeld = false
const script: Script = ({ messages }) => {
  if (isHeld) return { hang: true, text: 'Hel' }
  return messages.at(-1)?.role === 'tool' ? { text: 'Done.', usage } : { ...bash('echo line >> lines.txt'), usage }
}

let place: string
let database: TestDatabase
let stage: Stage
let owner: TestServer
let asked: TestServer

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'replays-of-instances-'))
  database = await createDatabase()
  const env = { ...instanceOn(database), OPENHANDS_SHARED_DIR: join(place, 'shared') }
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
  isHeld = true
  const { body } = await replay(asked, id)
  const cancelled = await owner.call('DELETE', `/replays/${body.id}`)
  isHeld = false
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
  expect((await owner.call('GET', '/replays/00000000-0000-4000-8000-000000000000')).body.error).toBe('replay_not_found')
})

test('without a shared directory the problem names the instance that has the files', async () => {
  await using own = await createDatabase()
  await using first = await setStage(script, { env: instanceOn(own) })
  await using second = await startServer({ env: instanceOn(own) })
  const id = await create(first)
  await first.say(id, 'first')
  const refused = await replay(second, id)
  const [row] = await own.query('select address from incarnations where pid = $1', [first.server.pid])
  expect([refused.status, refused.body.error]).toEqual([503, 'unavailable'])
  expect(refused.body.message).toContain(`on the disk of the instance at ${String(row?.['address'])}`)
  expect((await replay(first.server, id)).status).toBe(201)
})

/** Instances whose slots for runs are taken: which one gets a conversation that nobody owns. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'

let place: string
let database: TestDatabase
/** It has one slot. */
let stage: Stage
let [loaded, free, gone]: TestServer[] = []

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'full-instance-'))
  database = await createDatabase()
  const envOf = (slots: number) => ({
    ...instanceOn(database),
    OPENHANDS_SHARED_DIR: join(place, 'shared'),
    OPENHANDS_MAX_CONCURRENT_RUNS: String(slots),
  })
  stage = await setStage([bash('sleep 1000'), { text: 'Done.' }], { env: envOf(1) })
  loaded = await startServer({ env: envOf(2) })
  free = await startServer({ env: envOf(2) })
  gone = await startServer({ env: envOf(2) })
})
afterAll(async () => {
  for (const server of [gone, free, loaded, stage, database]) await server?.[Symbol.asyncDispose]()
  await rm(place, { recursive: true, force: true, maxRetries: 3 })
})

const create = async (server: TestServer) => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body } = await server.call('POST', '/conversations', { llm_config })
  return `/conversations/${body.id}`
}
const begin = async (server: TestServer, path: string) => {
  const message = { role: 'user', content: 'Begin.' }
  const { status, body } = await server.call('POST', `${path}/messages`, { message, run: true })
  expect(status, JSON.stringify(body)).toBe(202)
}
const OWNER = 'select i.pid from conversations c join incarnations i on i.id = c.owner where c.id = $1'
const ownerOf = async (path: string) => (await database.query(OWNER, [path.split('/').at(-1)]))[0]?.['pid']
const ACTIVE = 'select active_runs from incarnations where pid = $1 and ended_at is null'
const untilPublished = (server: TestServer, active: number) =>
  until(`${active} published runs`, async () => {
    const [row] = await database.query(ACTIVE, [server.pid])
    return Number(row?.['active_runs']) === active
  })

test('a full instance leaves a conversation without an owner to the least loaded one, and takes it if all are full', async () => {
  const asked = stage.server
  const unowned: string[] = []
  while (unowned.length < 5) unowned.push(await create(gone!))
  const [first, second, third, streamed, last] = unowned as [string, string, string, string, string]
  expect(await gone!.stop()).toBe(0)
  // It has a free slot, and does not look at the others.
  await begin(asked, first)
  expect(await ownerOf(first)).toBe(asked.pid)
  await begin(loaded!, await create(loaded!))
  await untilPublished(loaded!, 1)
  await until('its limit', async () => (await database.query(`${ACTIVE} and run_limit = 2`, [free!.pid])).length > 0)

  // A stream finds the same one.
  const stream = await subscribe(asked.url, `${streamed}/events/stream`)
  expect(await ownerOf(streamed)).toBe(free!.pid)
  await begin(asked, second)
  stream.close()
  expect(await ownerOf(second)).toBe(free!.pid)
  await untilPublished(free!, 1)
  await begin(loaded!, await create(loaded!))
  await untilPublished(loaded!, 2)
  await begin(asked, third)
  expect(await ownerOf(third)).toBe(free!.pid)
  await untilPublished(free!, 2)
  await begin(asked, last)
  expect(await ownerOf(last)).toBe(asked.pid)
})

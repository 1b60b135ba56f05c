/** Servers on one real database whose settings do not fit together. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let place: string
let first: TestServer
let itsPort: number

beforeAll(async () => {
  database = await createDatabase()
  place = await mkdtemp(join(tmpdir(), 'instances-'))
  itsPort = await freePort()
  first = await startServer({ env: envWith({ OPENHANDS_CLUSTER_LISTEN: `127.0.0.1:${itsPort}` }) })
})
afterAll(async () => {
  await first[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(place, { recursive: true })
})

const envWith = (changes: Record<string, string>) => ({
  ...instanceOn(database),
  OPENHANDS_WORKDIR_BASE: join(place, 'work'),
  ...changes,
})

test('an instance logs the names of settings in which another one differs, and no value', async () => {
  const secret = 'a-secret-of-one-instance'
  await using second = await startServer({ env: envWith({ OPENHANDS_IDLE_SECONDS: '77', LLM_API_KEY: secret }) })
  await until('the warning', async () => second.output().includes('other values of these settings'))
  const line = second
    .output()
    .split('\n')
    .find((each) => each.includes('other values of these settings'))
  expect(JSON.parse(line!)).toMatchObject({ settings: ['LLM_API_KEY', 'OPENHANDS_IDLE_SECONDS'] })
  const rows = await database.query('select settings from incarnations where address is not null')
  expect(rows).toHaveLength(2)
  expect(JSON.stringify(rows)).not.toContain(secret)
  await using same = await startServer({
    env: envWith({ OPENHANDS_MAX_CONCURRENT_RUNS: '3', OPENHANDS_IDLE_SECONDS: '77', LLM_API_KEY: secret }),
  })
  await until('the comparison with the first', async () => same.output().includes('other values of these settings'))
  expect(same.output().match(/other values of these settings/g)).toHaveLength(1)
  expect(first.output()).not.toContain('other values')
})

test('a server does not start with an advertise URL that leads to another instance, or to nobody', async () => {
  for (const wrong of [itsPort, await freePort()]) {
    const env = envWith({ OPENHANDS_ADVERTISE_URL: `http://127.0.0.1:${wrong}` })
    await expect(startServer({ env, place })).rejects.toThrow('does not lead back to this instance')
  }
  expect((await first.call('GET', '/ready')).status).toBe(200)
})

/** An instance that was killed and starts again on its data directory: its former self has ended, and nobody else has. */
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let stage: Stage
let env: Record<string, string>

beforeAll(async () => {
  database = await createDatabase()
  env = instanceOn(database)
  stage = await setStage([bash('sleep 1000'), { text: 'Done.' }], { env })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** The incarnations that live, by the ids of their processes. */
const living = async () =>
  (await database.query('select pid from incarnations where ended_at is null order by id')).map(({ pid }) => pid)

const pipesOf = async ({ dataDir }: TestServer, id: string): Promise<string[]> => {
  const entries = await readdir(join(dataDir, 'sessions', id), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFIFO()).map(({ parentPath, name }) => join(parentPath, name))
}

test('it has its conversations at once after kill -9, and recovers their runs', async () => {
  const { server } = stage
  const [idle, working] = [await stage.create(), await stage.create()]
  await server.call('POST', `/conversations/${working}/messages`, {
    message: { role: 'user', content: 'go' },
    run: true,
  })
  await until('a running call', async () => (await stage.events(working)).some(({ type }) => type === 'ToolUse'))
  const left = await until('the pipes of the call', async () => {
    const pipes = await pipesOf(server, working)
    return pipes.length > 0 && pipes
  })
  await server.restart('SIGKILL')
  // Without the wait for the end of the former one, each request would be 503 owner_lost.
  const answers = await Promise.all(
    [idle, working].map(async (id) => {
      const { status, body } = await server.call('POST', `/conversations/${id}/events`, { name: 'here' })
      return [status, body.error]
    }),
  )
  expect(answers).toEqual([
    [201, undefined],
    [201, undefined],
  ])
  expect(await living()).toEqual([server.pid])
  const updates = await stage.events(working, 'types=StatusUpdate')
  expect(updates.at(-1)).toMatchObject({ status: 'paused', reason: 'owner_lost' })
  // Nothing reads what the former shells have left.
  const now = await pipesOf(server, working)
  expect(left.filter((pipe) => now.includes(pipe))).toEqual([])
})

test('a repeated fork is answered by the instance that has the fork, although another one has its original since', async () => {
  const { server } = stage
  await using other = await startServer({ env })
  const id = await stage.create()
  const fork = async ({ call }: TestServer) =>
    await call('POST', `/conversations/${id}/fork`, { run: true }, { 'idempotency-key': 'repeated-fork' })
  const { body: made } = await fork(server)
  await server.restart('SIGKILL')
  for (const [at, opened] of [
    [server, id],
    [other, made.id],
  ] as const)
    expect((await at.call('POST', `/conversations/${opened}/events`, { name: 'here' })).status).toBe(201)
  for (const at of [server, other]) {
    const { status, body } = await fork(at)
    expect([status, body.id, body.run_id], JSON.stringify(body)).toEqual([201, made.id, made.run_id])
  }
})

test('a start with a copy of the data directory of an instance that lives does not end that one', async () => {
  const { server } = stage
  const id = await stage.create()
  // Instances of other tests, whose lease has not ended yet.
  const others = (await living()).filter((pid) => pid !== server.pid)
  const livingHere = async () => (await living()).filter((pid) => !others.includes(pid))
  await using copy = await startServer({
    env,
    prepare: (dataDir) =>
      cp(server.dataDir, dataDir, {
        recursive: true,
        filter: (path) => !path.endsWith('.sock') && !path.endsWith('shells'),
      }),
  })
  expect(await livingHere()).toEqual([server.pid, copy.pid])
  expect((await copy.call('POST', `/conversations/${id}/events`, { name: 'there' })).status).toBe(201)
  await copy.restart('SIGKILL')
  expect(await livingHere()).toEqual([server.pid, copy.pid])
  expect((await server.call('GET', `/conversations/${id}`)).status).toBe(200)
})

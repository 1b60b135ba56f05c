/** Two servers on one real database, one of which is stopped: what its clients and its agents notice. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const script = {
  replies: [
    { when: 'outlive', turns: [bash('sleep 1000'), { text: 'It was interrupted.' }] },
    {
      when: 'wait for the file',
      turns: [bash('while [ ! -e go ]; do sleep 0.05; done; echo over'), bash('echo next'), { text: 'Done.' }],
    },
    { turns: [{ text: 'Hello.' }] },
  ],
}

let database: TestDatabase
let stage: Stage
let other: TestServer
let env: Record<string, string>

beforeAll(async () => {
  database = await createDatabase()
  env = {
    OPENHANDS_DATABASE_URL: database.url,
    OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:0',
    OPENHANDS_ISOLATION: 'none',
  }
  other = await startServer({ env })
  stage = await setStage(script, other)
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const startLeaving = async (drainSeconds: number, workdirBase: string) =>
  await startServer({
    env: { ...env, OPENHANDS_DRAIN_SECONDS: String(drainSeconds), OPENHANDS_WORKDIR_BASE: workdirBase },
  })

const createAt = async (server: TestServer) => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body } = await server.call('POST', '/conversations', { llm_config })
  return `/conversations/${body.id}`
}

const say = (server: TestServer, path: string, content: string) =>
  server.call('POST', `${path}/messages`, { message: { role: 'user', content }, run: true })

const eventsAt = async (server: TestServer, path: string): Promise<Typed[]> =>
  (await server.call('GET', `${path}/events?limit=100`)).body.items

type Typed = { readonly type: string; readonly seq: number; readonly [field: string]: unknown }
const ofType = (events: readonly Typed[], type: string) => events.filter((event) => event.type === type)

test('a run of an instance that is stopped continues at another one after its current call, without a new run', async () => {
  await using leaving = await startLeaving(600, `${other.dataDir}/work`)
  const path = await createAt(leaving)
  const idle = await createAt(leaving)
  expect((await say(leaving, path, 'Please wait for the file.')).status).toBe(202)
  await until('a running call', async () => ofType(await eventsAt(leaving, path), 'ToolUse').length > 0)
  const { workdir } = (await leaving.call('GET', path)).body
  const stopped = leaving.stop('SIGTERM')
  await until('the end of its readiness', async () => (await leaving.call('GET', '/ready')).status === 503)

  // The conversation at rest and new ones are with the other instance now.
  await until(
    'the hand-over',
    async () =>
      (await leaving.call('GET', idle)).status === 200 && ![null, await ownerOf(path)].includes(await ownerOf(idle)),
  )
  const fresh = await createAt(leaving)
  expect(await ownerOf(fresh)).toBe(await ownerOf(idle))
  // The call still runs, and its conversation is answered here and there.
  expect((await leaving.call('GET', path)).body.status).toBe('running')
  expect((await other.call('GET', path)).body.status).toBe('running')

  await other.call('PUT', `${path}/files/go`, 'now', { 'content-type': 'application/octet-stream' })
  expect(workdir).toBeTruthy()
  await until('the end of the run', async () => (await other.call('GET', path)).body.status === 'idle')
  expect(await stopped).toBe(0)
  const events = await eventsAt(other, path)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
  expect(ofType(events, 'ToolResult')).toMatchObject([{ is_error: false }, { is_error: false }])
  expect(ofType(events, 'Result')).toMatchObject([{ stop_reason: 'completed', steps: 3 }])
  expect(new Set(events.flatMap(({ run_id }) => run_id ?? [])).size).toBe(1)
})

test('a call that outlives the drain is interrupted, and its run continues at another instance', async () => {
  await using leaving = await startLeaving(0, `${other.dataDir}/work`)
  const path = await createAt(leaving)
  await say(leaving, path, 'Please outlive it.')
  await until('a running call', async () => ofType(await eventsAt(leaving, path), 'ToolUse').length > 0)
  // The exit code says whether all of it had ended in time.
  await leaving.stop('SIGTERM')
  await until('the end of the run', async () => (await other.call('GET', path)).body.status === 'idle')
  const events = await eventsAt(other, path)
  expect(ofType(events, 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
  expect(ofType(events, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'It was interrupted.' }])
})

const ownerOf = async (path: string) =>
  (await database.query('select owner from conversations where id = $1', [path.split('/').at(-1)]))[0]?.['owner']

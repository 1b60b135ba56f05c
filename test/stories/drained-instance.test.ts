/** Two servers on one real database, one of which is stopped: what its clients and its agents notice. */
import { existsSync } from 'node:fs'
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

const script = {
  replies: [
    { when: 'outlive', turns: [bash('sleep 999 &'), bash('sleep 1000 > begun')] },
    { when: 'Processes in the background were interrupted (1)', turns: [{ text: 'It was interrupted.' }] },
    { when: 'has stopped, and it continues', turns: [bash('echo next'), { text: 'Done.' }] },
    {
      when: 'wait for the file',
      turns: [bash('while [ ! -e go ]; do sleep 0.05; done; echo over')],
    },
    { when: 'Message', turns: [bash('echo one'), { text: 'Done.' }] },
    { turns: [{ text: 'Hello.' }] },
  ],
}

let database: TestDatabase
let stage: Stage
let other: TestServer
let env: Record<string, string>

beforeAll(async () => {
  database = await createDatabase()
  env = instanceOn(database)
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
    env: {
      ...env,
      OPENHANDS_DRAIN_SECONDS: String(drainSeconds),
      OPENHANDS_WORKDIR_BASE: workdirBase,
      OPENHANDS_MAX_CONCURRENT_RUNS: '1',
    },
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
  await leaving.call('POST', `${path}/messages`, { message: { role: 'user', content: 'Please wait for the file.' } })
  const waited = leaving.call('POST', `${path}/run`, { wait: true })
  await until('a running call', async () => ofType(await eventsAt(leaving, path), 'ToolUse').length > 0)
  const queued = await createAt(leaving)
  await say(leaving, queued, 'Hello.')
  await until('a run that waits', async () =>
    (await eventsAt(leaving, queued)).some(({ reason }) => reason === 'queued'),
  )
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
  const plan = { at: 1, permission_mode: 'bypass', network: { mode: 'open' }, max_cost_usd: 1 }
  const replayed = await leaving.call('POST', '/replays', { ...plan, conversation_ids: [idle.split('/').at(-1)] })
  expect(replayed.status, JSON.stringify(replayed.body)).toBe(201)
  // A run that waits for its turn needs no deadline.
  await until('the queued run', async () => ofType(await eventsAt(other, queued), 'Result').length > 0)
  expect(ofType(await eventsAt(other, queued), 'Result')).toMatchObject([{ stop_reason: 'completed' }])
  const forked = await leaving.call('POST', `${path}/fork`)
  expect([forked.status, forked.body.status]).toEqual([201, 'paused'])
  const forkOfIdle = await leaving.call('POST', `${idle}/fork`)
  expect(forkOfIdle.status).toBe(201)
  // The call still runs, and its conversation is answered here and there.
  expect((await leaving.call('GET', path)).body.status).toBe('running')
  expect((await other.call('GET', path)).body.status).toBe('running')

  await other.call('PUT', `${path}/files/go`, 'now', { 'content-type': 'application/octet-stream' })
  expect(workdir).toBeTruthy()
  await until('the end of the run', async () => (await other.call('GET', path)).body.status === 'idle')
  expect(await waited).toMatchObject({ status: 200, body: { result: { stop_reason: 'completed' } } })
  expect(await stopped).toBe(0)
  for (const { body } of [forked, forkOfIdle])
    expect((await other.call('GET', `/conversations/${body.id}`)).status).toBe(200)
  const events = await eventsAt(other, path)
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
  expect(ofType(events, 'ToolResult')).toMatchObject([{ is_error: false }, { is_error: false }])
  expect(ofType(events, 'Result')).toMatchObject([{ stop_reason: 'completed', steps: 3 }])
  expect(new Set(events.flatMap(({ run_id }) => run_id ?? [])).size).toBe(1)
})

test('what outlives the drain is interrupted, the model reads it, and the run continues at another instance', async () => {
  await using leaving = await startLeaving(0, `${other.dataDir}/work`)
  const path = await createAt(leaving)
  await say(leaving, path, 'Please outlive it.')
  const { workdir } = (await leaving.call('GET', path)).body
  // A call that has not begun is not interrupted.
  await until('a running command', async () => existsSync(join(workdir, 'begun')))
  expect(await leaving.stop('SIGTERM'), leaving.output().slice(-5000)).toBe(0)
  await until('the end of the run', async () => (await other.call('GET', path)).body.status === 'idle')
  const events = await eventsAt(other, path)
  expect(ofType(events, 'ToolResult')).toMatchObject([{ is_error: false }, { error_type: 'interrupted' }])
  expect(ofType(events, 'ProcessesEnded')).toMatchObject([
    { reason: 'interrupted', sessions: ['agent'], processes: 1, command_lines: ['sleep 999'] },
  ])
  expect(JSON.stringify(stage.model.requests.at(-1))).toContain('interrupted (1):\\n- sleep 999')
  expect(ofType(events, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'It was interrupted.' }])
})

test('a rolling restart under load costs clients reconnections at most, and no event is lost or doubled', async () => {
  await using leaving = await startLeaving(600, `${other.dataDir}/work`)
  const servers = [leaving, other]
  const over = new AbortController()
  let answered = 0
  const refusals: unknown[] = []
  /** As behind a balancer: a connection that fails or breaks is made again, to the next instance. */
  const send = async (turn: number, method: string, path: string, body: unknown, headers = {}): Promise<Sent> => {
    const server = servers[turn % servers.length]!
    const answer = await server.call(method, path, body, headers).catch((error: unknown) => {
      if (!(error instanceof TypeError)) throw error // what `fetch` says of a broken connection
    })
    if (!answer) return await send(turn + 1, method, path, body, headers)
    if (answer.status >= 500) refusals.push([method, path, answer.body])
    answered += 1
    return answer
  }
  const post = async (path: string, turn: number) => {
    const message = { role: 'user', content: `Message ${turn}.` }
    const headers = { 'idempotency-key': `${path.split('/').at(-1)}-${turn}` }
    return await send(turn, 'POST', `${path}/messages`, { message }, headers)
  }
  const statusOf = async (path: string, turn: number) => (await send(turn, 'GET', path, undefined)).body.status
  const talk = async (path: string, first: number) => {
    for (let turn = first; !over.signal.aborted; turn++) {
      expect((await post(path, turn)).status).toBe(202)
      const run = await send(turn, 'POST', `${path}/run`, { wait: true })
      // The connection of an earlier attempt broke, which has started it.
      if (run.status === 409) await until('its end', async () => (await statusOf(path, turn)) !== 'running')
      else expect(run.body.result).toMatchObject({ stop_reason: 'completed' })
    }
  }
  const follow = async (path: string, first: number) => {
    const seen: Typed[] = []
    for (let turn = first; ; turn++) {
      const { url } = servers[turn % servers.length]!
      const after = seen.at(-1)?.seq ?? 0
      const stream = await subscribe(url, `${path}/events/stream?after_seq=${after}`).catch((error: unknown) => {
        if (!(error instanceof TypeError)) throw error
      })
      if (!stream) continue
      if (over.signal.aborted) stream.close()
      const stop = () => stream.close()
      over.signal.addEventListener('abort', stop)
      await stream.ended
      over.signal.removeEventListener('abort', stop)
      seen.push(...stream.frames.flatMap(({ data }) => ('seq' in data ? [data] : [])))
      if (over.signal.aborted) return seen
    }
  }
  const paths = [await createAt(leaving), await createAt(other), await createAt(leaving), await createAt(other)]
  const followed = paths.map(follow)
  const talks = Promise.all(paths.map(talk))
  const more = async (count: number) => {
    const enough = answered + count
    await Promise.race([talks, until('more answers', () => Promise.resolve(answered > enough))])
  }
  await more(12)
  for (const server of servers) {
    await server.restart('SIGTERM')
    await more(12)
  }
  over.abort()
  await talks
  expect(refusals).toEqual([])
  for (const [at, path] of paths.entries()) {
    await until('the last run', async () => (await other.call('GET', path)).body.status === 'idle')
    const events = await allEventsAt(other, path)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    const seen = await followed[at]!
    expect(seen).toEqual(events.slice(0, seen.length))
    const ids = ofType(events, 'Result').map((result) => result['run_id'])
    expect(new Set(ids).size).toBe(ids.length)
    expect(ofType(events, 'Result').filter((result) => result['stop_reason'] !== 'completed')).toEqual([])
    const said = ofType(events, 'UserMessage').map(({ idempotency_key: key }) => key)
    expect(new Set(said).size).toBe(said.length)
  }
})

type Sent = Awaited<ReturnType<TestServer['call']>>

async function allEventsAt(server: TestServer, path: string): Promise<Typed[]> {
  const all: Typed[] = []
  for (let next = ''; ;) {
    const { items, next_page_id: id } = (await server.call('GET', `${path}/events?limit=1000${next}`)).body
    all.push(...items)
    if (id === null) return all
    next = `&page_id=${id}`
  }
}

const ownerOf = async (path: string) =>
  (await database.query('select owner from conversations where id = $1', [path.split('/').at(-1)]))[0]?.['owner']

/** Streams, WebSockets and waits through an instance that does not own the conversation, also when the owner is killed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import type { SocketClient } from '../support/socket.ts'
import { RefusedUpgrade, connect, connectAsBrowser } from '../support/socket.ts'
import type { Frame } from '../support/stream.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { answer } from './requests.ts'

const script = {
  replies: [
    { when: 'Take long', turns: [bash('sleep 1000'), { text: 'Done.' }] },
    { when: 'Write slowly', turns: [{ text: 'one two three', chunk_delay_ms: 50 }] },
    { when: 'Never end', turns: [{ text: 'Begun, and not ended. '.repeat(5000), chunk_delay_ms: 30 }] },
    { when: 'In steps', turns: [bash('sleep 1'), bash('sleep 1'), bash('sleep 1'), { text: 'Done.' }] },
    { turns: [bash('echo one'), { text: 'Done.' }] },
  ],
}

let database: TestDatabase
let env: Record<string, string>
let stage: Stage
let owner: TestServer
let asked: TestServer
let third: TestServer

beforeAll(async () => {
  database = await createDatabase()
  env = instanceOn(database)
  stage = await setStage(script, { env })
  owner = stage.server
  asked = await startServer({ env })
  third = await startServer({ env })
})
afterAll(async () => {
  await third[Symbol.asyncDispose]()
  await asked[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const create = async (server = owner, fields: object = {}) => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body } = await server.call('POST', '/conversations', { llm_config, ...fields })
  return `/conversations/${body.id}`
}
const say = (server: TestServer, path: string, content: string) =>
  server.call('POST', `${path}/messages`, { message: { role: 'user', content }, run: true })
const eventsAt = async (server: TestServer, path: string) =>
  (await server.call('GET', `${path}/events?limit=200`)).body.items

const durable = (frames: readonly Frame[]) => frames.filter(({ data }) => 'seq' in data).map(({ data }) => data)
const isEndOfRun = ({ event, data }: Frame) => event === 'StatusUpdate' && data.previous_status === 'running'
const isLastFrame = ({ type, previous_status: before }: SocketClient['frames'][number]) =>
  type === 'StatusUpdate' && before === 'running'

test('a stream through another instance has the backlog, the live events and the deltas, as they are stored', async () => {
  const path = await create()
  await say(owner, path, 'Do it.')
  await until('the end of the first run', async () => (await owner.call('GET', path)).body.status === 'idle')
  const stream = await subscribe(asked.url, `${path}/events/stream?after_seq=0&deltas=true`)
  const before = (await eventsAt(owner, path)).length
  await say(asked, path, 'Write slowly.')
  await stream.until((frame) => isEndOfRun(frame) && frame.data.seq > before)
  expect(durable(stream.frames)).toEqual(await eventsAt(owner, path))
  const deltas = stream.frames.filter(({ event }) => event === 'AssistantDelta')
  expect(deltas.map(({ data }) => data.text_delta).join('')).toBe('one two three')
  stream.close()
})

test('a client that joins while a message is written gets its beginning', async () => {
  const path = await create()
  const first = await subscribe(owner.url, `${path}/events/stream?deltas=true`)
  await say(owner, path, 'Never end.')
  await first.until(({ event, data }) => event === 'AssistantDelta' && data.offset > 20)
  const joined = await subscribe(asked.url, `${path}/events/stream?deltas=true`)
  const { data } = await joined.until(({ event }) => event === 'AssistantDelta')
  expect(data).toMatchObject({ offset: 0, text_delta: expect.stringMatching(/^Begun, and not ended/) })
  await asked.call('POST', `${path}/pause`, { interrupt: true })
  for (const stream of [first, joined]) stream.close()
})

test('a wait through another instance has a limit, and a run that cannot begin has the problem of the owner', async () => {
  const path = await create()
  await asked.call('POST', `${path}/messages`, { message: { role: 'user', content: 'Take long.' } })
  const wait = await asked.call('POST', `${path}/run`, { wait: true, timeout: 0.1 })
  expect(wait).toMatchObject({ status: 200, body: { status: 'running', run_id: expect.any(String) } })
  expect(wait.body.result).toBeUndefined()
  const second = await asked.call('POST', `${path}/run`, { wait: true })
  expect(second).toMatchObject({ status: 409, body: { error: 'already_running' } })
  await asked.call('POST', `${path}/pause`, { interrupt: true })
})

test('a client gets its hook requests through another instance, and is connected for the owner', async () => {
  const path = await create()
  const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ id: 'guard' }] }] }
  await asked.call('PUT', `${path}/client-hooks/policy`, { hooks })
  const stream = await subscribe(asked.url, `${path}/events/stream?types=Result&hook_client=policy`)
  expect((await owner.call('GET', `${path}/client-hooks`)).body.items).toMatchObject([{ connected: true }])
  await say(asked, path, 'Do it.')
  const { data } = await stream.until(({ event }) => event === 'HookRequest')
  const output = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } }
  const id = path.split('/').at(-1) ?? ''
  await answer(asked.call, id, data.request_id, { kind: 'hook', output })
  await stream.until(({ event }) => event === 'HookRequestEnded')
  await stream.until(({ event }) => event === 'Result')
  expect((await eventsAt(asked, path)).filter(({ type }: Typed) => type === 'ToolResult')).toMatchObject([
    { is_error: true },
  ])
  stream.close()
  const wrong = await asked.call('GET', `${path}/events/stream?hook_client=nobody`)
  expect([wrong.status, wrong.body.error]).toEqual([404, 'client_hooks_not_found'])
  const ahead = await asked.call('GET', `${path}/events/stream?after_seq=9999`)
  expect(ahead.body).toMatchObject({ error: 'cursor_ahead' })
})

test('a WebSocket through another instance sends events, and its frames are executed by the owner', async () => {
  const path = await create()
  const socket = await connect(asked.url, `${path}/ws?deltas=true`)
  const ready = await socket.until(({ type }) => type === 'ready')
  expect(ready).toMatchObject({ status: 'idle', conversation_id: path.split('/').at(-1) })
  socket.say({ type: 'message', id: 'm', message: { role: 'user', content: 'Do it.' }, idempotency_key: 'once' })
  const posted = await socket.until(({ type, id }) => type === 'ack' && id === 'm')
  expect(posted).toMatchObject({ of: 'message', result: { seq: expect.any(Number) } })
  // The same key is the same request at the owner, over its own route.
  const headers = { 'idempotency-key': 'once' }
  const message = { role: 'user', content: 'Do it.' }
  const again = await owner.call('POST', `${path}/messages`, { message, run: false }, headers)
  expect([again.status, again.body]).toEqual([202, posted.result])
  socket.say({ type: 'run', id: 'r' })
  await socket.until(({ type, of }) => type === 'ack' && of === 'run')
  await socket.until(isLastFrame)
  socket.say({ type: 'task', id: 't', title: 'One', runnable: { type: 'Command', command: 'true' } })
  const task = await socket.until(({ type, of }) => type === 'ack' && of === 'task')
  socket.say({ type: 'cancel_task', task_id: task.result.id })
  await socket.until(({ type, of }) => type === 'ack' && of === 'cancel_task')
  socket.say({ type: 'pause', interrupt: true })
  await socket.until(({ type, of }) => type === 'ack' && of === 'pause')
  socket.say({ type: 'cancel_task', id: 'wrong', task_id: '00000000-0000-4000-8000-000000000000' })
  expect(await socket.until(({ id }) => id === 'wrong')).toMatchObject({ type: 'problem', error: 'task_not_found' })
  socket.say('no frame')
  await socket.until(({ type, error }) => type === 'problem' && error === 'invalid_request')
  socket.close()
  const stored = (await eventsAt(owner, path)).filter(({ seq }: Typed) => seq > ready.after_seq)
  const sent = socket.frames.filter((frame) => 'seq' in frame)
  expect(sent).toEqual(stored.slice(0, sent.length))
})

test('the rights of a key hold on WebSockets through another instance, for its upgrade and its frames', async () => {
  const path = await create()
  const { body } = await asked.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const socket = await connect(asked.url, `${path}/ws`, { headers: { authorization: `Bearer ${body.key}` } })
  socket.say({ type: 'run' })
  await socket.until(({ type, error }) => type === 'problem' && error === 'forbidden')
  expect((await asked.call('DELETE', `/keys/${body.id}`)).status).toBe(204)
  expect(await socket.closed).toBe(4401)
  const other = { name: 'other', scopes: ['read'], conversations: ['00000000-0000-4000-8000-000000000000'] }
  const limited = await asked.call('POST', '/keys', other)
  const authorization = `Bearer ${limited.body.key}`
  const refused = connect(asked.url, `${path}/ws`, { headers: { authorization } })
  await expect(refused).rejects.toMatchObject({ status: 404, body: { error: 'conversation_not_found' } })
  await expect(refused).rejects.toBeInstanceOf(RefusedUpgrade)
  const browser = await connectAsBrowser(asked.url, `${path}/ws`)
  await browser.until(({ type }) => type === 'ready')
  browser.close()
})

test('readers through another instance get the last frame of a deletion', async () => {
  const path = await create()
  const stream = await subscribe(asked.url, `${path}/events/stream`)
  const socket = await connect(asked.url, `${path}/ws`)
  await socket.until(({ type }) => type === 'ready')
  expect((await asked.call('DELETE', path)).status).toBe(204)
  await stream.until(({ event }) => event === 'deleted')
  await socket.until(({ type }) => type === 'deleted')
  await Promise.all([stream.ended, socket.closed])
})

// The next two end instances, and come last.
test('clients of another instance outlive the owner: each event comes once, in order, and the wait ends', async () => {
  const path = await create()
  const unfinished = await create()
  const idle = await create()
  const resumed = await create(owner, { resume_on_start: true })
  const stream = await subscribe(asked.url, `${path}/events/stream?after_seq=0`)
  const [socket, partial, resting, resuming] = await Promise.all([
    connect(asked.url, `${path}/ws?after_seq=0`),
    subscribe(asked.url, `${unfinished}/events/stream?deltas=true`),
    connect(asked.url, `${idle}/ws`),
    subscribe(asked.url, `${resumed}/events/stream`),
  ])
  await say(asked, unfinished, 'Never end.')
  await say(asked, resumed, 'Take long.')
  await resuming.until(({ event }) => event === 'ToolUse')
  await partial.until(({ event }) => event === 'AssistantDelta')
  await asked.call('POST', `${path}/messages`, { message: { role: 'user', content: 'Take long.' } })
  const waiting = asked.call('POST', `${path}/run`, { wait: true })
  await stream.until(({ event }) => event === 'ToolUse')
  await owner.stop('SIGKILL')

  const run = await waiting
  expect(run).toMatchObject({ status: 200, body: { status: 'paused', result: { stop_reason: 'owner_lost' } } })
  await Promise.all([stream.until(isEndOfRun), socket.until(isLastFrame), partial.until(isEndOfRun)])
  // What was written of the message does not count any more.
  const begun = partial.frames.find(({ event }) => event === 'AssistantDelta')?.data.message_id
  expect(partial.frames.find(({ event }) => event === 'AssistantAborted')?.data.message_id).toBe(begun)

  // The new owner has continued the run that continues after a restart.
  await resuming.until(({ event, data }) => event === 'Result' && data.stop_reason === 'completed')

  // The same connections go on at the new owner.
  for (const [client, goal] of [
    [socket, path],
    [resting, idle],
  ] as const) {
    client.say({ type: 'message', id: goal, message: { role: 'user', content: 'Do it.' }, run: true })
    expect(await client.until(({ id }) => id === goal)).toMatchObject({ type: 'ack' })
    await client.until(({ type, stop_reason: reason }) => type === 'Result' && reason === 'completed')
    await until('rest', async () => (await asked.call('GET', goal)).body.status === 'idle')
  }
  const events = await eventsAt(asked, path)
  const isThere = ({ data }: Frame) => data.seq === events.at(-1).seq
  await stream.until(isThere)
  await socket.until(({ seq }) => seq === events.at(-1).seq)
  expect(events.map(({ seq }: Typed) => seq)).toEqual(events.map((_: unknown, index: number) => index + 1))
  expect(durable(stream.frames)).toEqual(events)
  expect(socket.frames.filter((frame) => 'seq' in frame)).toEqual(events)
  stream.close()
  for (const { close } of [socket, partial, resting, resuming]) close()
})

test('clients outlive an owner that is only stopped, and sends nothing', async () => {
  await using paused = await startServer({ env })
  const path = await create(paused)
  const stream = await subscribe(asked.url, `${path}/events/stream?after_seq=0`)
  const run = asked.call('POST', `${path}/messages`, { message: { role: 'user', content: 'Take long.' }, run: true })
  expect((await run).status).toBe(202)
  await stream.until(({ event }) => event === 'ToolUse')
  process.kill(paused.pid, 'SIGSTOP')
  await stream.until(isEndOfRun)
  const events = await eventsAt(asked, path)
  await stream.until(({ data }) => data.seq === events.at(-1).seq)
  expect(durable(stream.frames)).toEqual(events)
  stream.close()
})

test('clients outlive an owner that stops in the middle of a run, and the run and its wait end at the next one', async () => {
  await using leaving = await startServer({ env })
  const path = await create(leaving)
  const stream = await subscribe(asked.url, `${path}/events/stream?after_seq=0`)
  await asked.call('POST', `${path}/messages`, { message: { role: 'user', content: 'In steps.' } })
  const run = asked.call('POST', `${path}/run`, { wait: true })
  await stream.until(({ event }) => event === 'ToolUse')
  expect(await leaving.stop(), leaving.output().slice(-5000)).toBe(0)
  expect((await run).body).toMatchObject({ status: 'idle', result: { stop_reason: 'completed' } })
  await stream.until(isEndOfRun)
  const events = await eventsAt(asked, path)
  expect(durable(stream.frames)).toEqual(events)
  expect(events.filter((event: { type: string }) => event.type === 'Result')).toHaveLength(1)
  stream.close()
})

test('an instance that stops ends the streams of conversations of others with a last frame', async () => {
  const path = await create(third)
  const stream = await subscribe(asked.url, `${path}/events/stream`)
  const socket = await connect(asked.url, `${path}/ws`)
  await socket.until(({ type }) => type === 'ready')
  expect(await asked.stop()).toBe(0)
  await stream.until(({ event }) => event === 'server_closing')
  await socket.until(({ type }) => type === 'server_closing')
})

type Typed = { readonly type: string; readonly seq: number }

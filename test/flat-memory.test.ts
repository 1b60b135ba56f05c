/** Whatever clients do, over and over: the server's heap and its descriptors are as they were. `npm run soak` does it 10,000 times. */
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../src/wiring/start-server.ts'
import { startApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { effort, PATIENCE_MS } from './support/patience.ts'
import type { Answer } from './support/server.ts'
import { KEY } from './support/server.ts'
import { connect } from './support/socket.ts'
import { subscribe } from './support/stream.ts'
import { until } from './support/until.ts'

const CYCLES = effort(4, 10_000)
/** At the same time. */
const CLIENTS = 3
const WARM_UP = effort(2, 500)
/** Code that is compiled, and buffers that are kept for reuse. */
const SLACK_BYTES = effort(4, 1) * 1024 ** 2
/** Of what grows with the log by design: where in its file events are, how often which key came. */
const BYTES_PER_CYCLE = 300
/** Nobody listens there. */
const REFUSING_PORT = 1
/** Connections that are kept for the next request. */
const SLACK_DESCRIPTORS = 10

/** What ends by itself does so within this time. */
const LOOKS = { timeout: PATIENCE_MS / 4, interval: 200 }

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const answerOf = (delta: object, finish_reason: string) =>
  `data: ${JSON.stringify({
    id: 'answer',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'tiny',
    choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason }],
  })}\n\ndata: [DONE]\n\n`

/** Of a model that keeps no record of what it was asked: it makes the calls that the last message has as JSON. */
function answerTo(body: string): string {
  const { role, content } = JSON.parse(body).messages.at(-1)
  const text = typeof content === 'string' ? content : (content?.[0]?.text ?? '')
  const calls = role === 'user' && text.startsWith('[[') ? JSON.parse(text) : []
  if (calls.length === 0) return answerOf({ content: 'Hello.' }, 'stop')
  const tool_calls = calls.map(([name, input]: [string, object], index: number) => {
    return { index, id: `call-${index}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }
  })
  return answerOf({ tool_calls }, 'tool_calls')
}

let home: string
let model: Server
let modelUrl: string
let app: App
let id: string

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'flat-memory-'))
  // The client is in this process, too: it is to keep nothing of its own.
  performance.setResourceTimingBufferSize(0)
  model = createServer((question, response) => {
    const answer = async () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answerTo(await text(question)))
    }
    void answer().catch(() => response.destroy())
  })
  await once(model.listen(0, '127.0.0.1'), 'listening')
  modelUrl = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`
  app = await startApp(
    readConfig({
      OPENHANDS_MASTER_KEY: KEY,
      OPENHANDS_DATA_DIR: join(home, 'data'),
      OPENHANDS_WORKDIR_BASE: join(home, 'work'),
      OPENHANDS_SERVER_HOST: '127.0.0.1',
      OPENHANDS_SERVER_PORT: '0',
      OPENHANDS_LOG_LEVEL: 'CRITICAL',
      OPENHANDS_ISOLATION: 'none',
      OPENHANDS_CALLBACK_ALLOW: '127.0.0.1',
    }),
  )
  await app.ready
  id = await create()
})
afterAll(async () => {
  await app.close()
  model.close()
  model.closeAllConnections()
  await rm(home, { recursive: true, force: true, maxRetries: 3 })
})

async function call(method: string, path: string, body?: unknown): Promise<Pick<Answer, 'status' | 'body'>> {
  const response = await fetch(app.url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    body: response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text,
  }
}

const creating = (fields: object = {}) =>
  call('POST', '/conversations', {
    llm_config: { model: 'scripted', base_url: modelUrl, api_key: 'scripted-model-key' },
    ...fields,
  })

async function create(fields: object = {}): Promise<string> {
  const { status, body } = await creating(fields)
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}

const of = (path: string) => `/conversations/${id}${path}`
const statusOf = async (answer: Promise<{ status: number }>) => (await answer).status

/** One cycle of each, which leaves nothing behind. `at` is its number. */
const OPERATIONS: Record<string, (at: number) => Promise<unknown>> = {
  async 'a conversation is made, used and deleted'() {
    const own = await create({ metadata: { a: 'b' }, secrets: { TOKEN: 'a-value-of-the-test' } })
    await call('POST', `/conversations/${own}/messages`, { message: { role: 'user', content: 'x' } })
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'a create is refused'() {
    expect(await statusOf(creating({ workdir: join(home, 'data', 'sessions') }))).toBe(400)
    expect(await statusOf(creating({ tools: ['NoSuchTool'] }))).toBe(400)
    expect(await statusOf(creating({ id }))).toBe(409)
  },
  async 'a conversation that there is not is asked for'() {
    expect(await statusOf(call('GET', `/conversations/${crypto.randomUUID()}`))).toBe(404)
  },
  async 'a conversation is forked, and the fork deleted'(at) {
    const source = await shortLog()
    const { body } = await call('POST', `/conversations/${source}/fork`, { workdir: at % 2 ? 'share' : 'copy' })
    expect(await statusOf(call('DELETE', `/conversations/${body.id}`))).toBe(204)
  },
  async 'a run is waited for'() {
    const own = await create()
    const message = { role: 'user', content: 'x' }
    await call('POST', `/conversations/${own}/messages`, { message })
    const { body } = await call('POST', `/conversations/${own}/run`, { wait: true, timeout: 3600 })
    expect(body.result.stop_reason).toBe('completed')
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'streams and sockets come and go'() {
    const streams = [await subscribe(app.url, of('/events/stream')), await subscribe(app.url, '/firehose')]
    const socket = await connect(app.url, of('/ws'))
    for (const stream of streams) stream.close()
    socket.close()
    await socket.closed
  },
  async 'a session of a shell is opened and ended'(at) {
    const session_id = `own-${at}`
    expect(await statusOf(call('POST', of('/commands'), { command: 'true', session_id }))).toBe(200)
    expect(await statusOf(call('DELETE', of(`/shell-sessions/${session_id}`)))).toBe(204)
  },
  async 'a file is written, read and removed'(at) {
    const path = of(`/files/file-${at}`)
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/octet-stream' }
    expect((await fetch(app.url + path, { method: 'PUT', headers, body: 'content' })).status).toBeLessThan(300)
    expect(await statusOf(call('GET', path))).toBe(200)
    expect(await statusOf(call('DELETE', path))).toBe(204)
  },
  async 'a callback is made and deleted'() {
    const { body } = await call('POST', of('/callbacks'), { url: modelUrl, events: ['Result'] })
    expect(await statusOf(call('DELETE', of(`/callbacks/${body.id}`)))).toBe(204)
  },
  async 'a secret is set and deleted'() {
    expect(await statusOf(call('PUT', of('/secrets'), { secrets: { NAME: 'a-secret-of-the-test' } }))).toBe(200)
    expect(await statusOf(call('DELETE', of('/secrets/NAME')))).toBe(204)
  },
  async 'a run has subagents, and its conversation is deleted under one of them'() {
    const own = await create({ agents: { worker: { description: 'Works.', prompt: 'You work.' } } })
    const task = (more: object) => ['Task', { description: 'x', prompt: 'work', subagent_type: 'worker', ...more }]
    const content = JSON.stringify([task({}), task({}), task({ run_in_background: true })])
    await call('POST', `/conversations/${own}/messages`, { message: { role: 'user', content } })
    const { body } = await call('POST', `/conversations/${own}/run`, { wait: true, timeout: 3600 })
    expect(body.result.stop_reason).toBe('completed')
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'a call of a client tool has no answer'() {
    const client_tools = [{ name: 'ask', description: 'Asks.', input_schema: { type: 'object' } }]
    const own = await create({ tools: [], client_tools })
    const message = { role: 'user', content: JSON.stringify([['ask', {}]]) }
    await call('POST', `/conversations/${own}/messages`, { message, run: true })
    await until('the call', async () => (await call('GET', `/conversations/${own}/requests`)).body.items.length === 1)
    expect(await statusOf(call('POST', `/conversations/${own}/pause`, { interrupt: true }))).toBe(200)
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'a program that is no MCP server is started'() {
    const own = await create({ mcp: { mcpServers: { none: { command: 'false' } } } })
    const message = { role: 'user', content: 'x' }
    await call('POST', `/conversations/${own}/messages`, { message })
    await call('POST', `/conversations/${own}/run`, { wait: true, timeout: 3600 })
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'deliveries fail'() {
    const own = await create()
    const url = `http://127.0.0.1:${REFUSING_PORT}/`
    expect(await statusOf(call('POST', `/conversations/${own}/callbacks`, { url }))).toBe(201)
    await call('POST', `/conversations/${own}/messages`, { message: { role: 'user', content: 'x' } })
    expect(await statusOf(call('DELETE', `/conversations/${own}`))).toBe(204)
  },
  async 'requests and uploads are aborted'(at) {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/octet-stream' }
    // Not `fetch`, which keeps some kilobytes of each upload that it aborts, for minutes.
    const upload = request(app.url + of(`/files/half-${at}`), { method: 'PUT', headers }).on('error', () => {})
    upload.write(Buffer.alloc(1000), () => upload.destroy())
    await new Promise((resolve) => upload.on('close', resolve))
    const [leaves, waits] = [new AbortController(), { headers, signal: AbortSignal.timeout(1) }]
    const reading = fetch(app.url + of('/events?limit=1000'), { headers, signal: leaves.signal }).catch(() => {}) // aborted
    leaves.abort()
    await Promise.allSettled([reading, fetch(app.url + of('/events/stream'), waits)])
  },
  async 'events are listed, searched and counted'() {
    const read = await shortLog()
    for (const path of ['/events', '/events?q=hello', '/events/count', '', '/agent-info'])
      expect(await statusOf(call('GET', `/conversations/${read}${path}`))).toBe(200)
    expect(await statusOf(call('GET', '/conversations'))).toBe(200)
  },
}

let short: Promise<string> | undefined
/** Nothing is added to it: the log is copied or searched as a whole each time. */
const shortLog = () => (short ??= create())

/** Collecting garbage takes its time: without the soak, once for all of them. */
const TESTS: typeof OPERATIONS = effort(0, 1)
  ? OPERATIONS
  : {
      async 'all of it'(at) {
        for (const operation of Object.values(OPERATIONS)) await operation(at)
      },
    }

/** They start processes or several agents, and are done a tenth as often. */
const SLOW: ReadonlySet<string> = new Set([
  'a run has subagents, and its conversation is deleted under one of them',
  'a program that is no MCP server is started',
])

test.each(Object.entries(TESTS))(
  `%s, up to ${CYCLES} times: nothing of it stays in memory`,
  { timeout: 4 * PATIENCE_MS + CYCLES * 200 },
  async (name, operation) => {
    const cycles = SLOW.has(name) ? Math.ceil(CYCLES / 10) : CYCLES
    let at = 0
    const repeat = async (times: number) => {
      const end = at + times
      const work = async () => {
        while (at < end) await operation(at++)
      }
      await Promise.all(Array.from({ length: CLIENTS }, work))
    }
    await repeat(WARM_UP)
    const before = { heap: await settledHeap(), descriptors: await descriptors() }
    await repeat(cycles)
    const most = before.heap + SLACK_BYTES + cycles * BYTES_PER_CYCLE
    await expect.poll(settledHeap, LOOKS).toBeLessThan(most)
    await expect.poll(descriptors, LOOKS).toBeLessThan(before.descriptors + SLACK_DESCRIPTORS)
  },
)

/** What is in use once all that ends by itself has ended. */
async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 20; turn++) await yieldToLoop()
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const descriptors = async () => (await readdir('/proc/self/fd')).length

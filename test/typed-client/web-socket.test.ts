/** `webSocketSource` over cut and dead connections and restarts of a real server: each event once, in order, and no gap. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { WebSocketServer } from 'ws'
import type { AgentServerError } from '../../src/client/client.ts'
import { createClient, webSocketSource } from '../../src/client/client.ts'
import type { WebSocketSourceOptions } from '../../src/client/events/web-socket-source.ts'
import { startCutProxy } from '../support/cut-proxy.ts'
import { postOnce } from '../support/post-once.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

let server: TestServer
let proxy: Awaited<ReturnType<typeof startCutProxy>>
beforeAll(async () => {
  server = await startServer({ env: { LLM_MODEL: 'none' } })
  proxy = await startCutProxy(new URL(server.url))
})
afterAll(async () => {
  await proxy.close()
  await server[Symbol.asyncDispose]()
})

const connect = (more: Partial<WebSocketSourceOptions> = {}) => {
  const options = { baseUrl: proxy.url, apiKey: KEY }
  return createClient({ ...options, streamSource: webSocketSource({ ...options, ...more }) })
}

const failureOf = (reading: AsyncGenerator) =>
  reading.next().then(
    () => undefined,
    (error: unknown) => error,
  )

/** The events of one conversation as they arrive, until `stop`. */
function readAll(client: ReturnType<typeof createClient>, id: string, lost: AgentServerError[] = []) {
  const abort = new AbortController()
  const seqs: number[] = []
  const names: unknown[] = []
  const reading = (async () => {
    const options = { signal: abort.signal, onDisconnect: (reason: AgentServerError) => void lost.push(reason) }
    for await (const event of client.conversation(id).events(options)) {
      seqs.push(event.seq)
      if (event.type === 'ClientEvent') names.push(event.name)
    }
  })()
  const stop = async () => {
    abort.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  }
  return { seqs, names, stop }
}

test('shows each event once and in order, over cut connections, SIGTERM and kill -9', async () => {
  const client = connect()
  const { id } = await client.conversations.create()
  const lost: AgentServerError[] = []
  const { seqs, names, stop } = readAll(client, id, lost)
  const wanted: string[] = []
  const postUntil = async (count: number) => {
    while (wanted.length < count) await postOnce(server, id, wanted[wanted.push(`${wanted.length}`) - 1]!)
    await until('the events', async () => names.length === count)
  }
  await postUntil(3)
  for (const disturb of [
    async () => proxy.cut(),
    () => server.restart('SIGTERM'),
    () => server.restart('SIGKILL'),
    async () => proxy.cut(),
  ])
    await Promise.all([disturb(), postUntil(wanted.length + 6)])
  await stop()
  expect(names).toEqual(wanted)
  expect(seqs).toEqual(seqs.map((_, i) => i + 1))
  expect(lost.length).toBeGreaterThanOrEqual(4)
})

test('the firehose continues at its cursor, and its events have no other fields than those of the log', async () => {
  const client = connect()
  const { id } = await client.conversations.create()
  await postOnce(server, id, 'first')
  const types = ['ClientEvent'] as const
  const firehose = client.firehose({ cursor: '0', conversation_ids: [id], types })
  const first = (await firehose.next()).value!
  const [logged] = (await client.conversation(id).listEvents({ types }).all()) as object[]
  expect(first.event).toEqual(logged)
  proxy.cut()
  await postOnce(server, id, 'second')
  expect((await firehose.next()).value).toMatchObject({ event: { name: 'second' }, cursor: expect.any(String) })
  await firehose.return(undefined)
  const again = client.firehose({ cursor: first.cursor, conversation_ids: [id], types })
  expect((await again.next()).value).toMatchObject({ event: { name: 'second' } })
  await again.return(undefined)
})

test('a refusal has the code of the server, and a deleted conversation ends the stream', async () => {
  const client = connect()
  const { id } = await client.conversations.create()
  const missing = crypto.randomUUID()
  expect(await failureOf(client.conversation(missing).events())).toMatchObject({ code: 'conversation_not_found' })
  expect(await failureOf(connect({ apiKey: 'wrong' }).conversation(id).events())).toMatchObject({ status: 401 })
  // A ticket of the page's own backend that the server does not know.
  const options = { ticket: async () => 'ast_unknown' }
  const refused = await failureOf(createClientOnce(options).conversation(id).events())
  expect(refused).toMatchObject({ code: 'connection_failed', message: expect.stringContaining('could not be opened') })
  const { seqs, names } = readAll(client, id)
  await postOnce(server, id, 'last')
  await until('the event', async () => names.length === 1)
  const reading = client.conversation(id).events({ after: seqs.at(-1) })
  const end = reading.next()
  await client.conversation(id).delete()
  expect(await end).toEqual({ value: undefined, done: true })
})

const createClientOnce = (options: Partial<WebSocketSourceOptions>) => {
  const given = { baseUrl: proxy.url, apiKey: KEY, maxRetries: 0 }
  return createClient({ ...given, streamSource: webSocketSource({ ...given, ...options }) })
}

test('the ticket of a page comes from its own backend, for one conversation or for the firehose', async () => {
  const asked: (string | undefined)[] = []
  const backend = createClient({ baseUrl: proxy.url, apiKey: KEY })
  const ticket = async (conversation_id: string | undefined) => {
    asked.push(conversation_id)
    const body = conversation_id === undefined ? { firehose: true as const } : { conversation_id }
    return (await backend.createStreamTicket(body)).ticket
  }
  const { id } = await backend.conversations.create()
  const page = connect({ apiKey: undefined, ticket })
  const reading = page.conversation(id).events()
  expect((await reading.next()).value).toMatchObject({ type: 'SystemInit' })
  await reading.return(undefined)
  const firehose = page.firehose({ cursor: '0', conversation_ids: [id] })
  expect((await firehose.next()).value).toMatchObject({ event: { type: 'SystemInit' } })
  await firehose.return(undefined)
  expect(asked).toEqual([id, undefined])
})

/** A server that answers tickets, and says on its WebSockets what a test wants. */
async function startStrange(say: (socket: WebSocket, connections: number, url: string) => void) {
  let connections = 0
  const http = createServer((request, response) => {
    request.resume()
    response.writeHead(201, { 'content-type': 'application/json' }).end('{"ticket": "ast_any"}')
  })
  new WebSocketServer({ server: http }).on('connection', (socket, { url = '' }) => say(socket, ++connections, url))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const options = { baseUrl: `http://127.0.0.1:${(http.address() as { port: number }).port}` }
  return {
    client: (more: Partial<WebSocketSourceOptions> = {}) =>
      createClient({ ...options, streamSource: webSocketSource({ ...options, ...more }) }),
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      http.close()
    },
  }
}

const event = (seq: number, more: object = {}) => JSON.stringify({ type: 'ClientEvent', seq, ...more })

test('a server that is killed while a WebSocket is opened is asked again', async () => {
  const { id } = await connect().conversations.create()
  let sockets = 0
  let isAway = false
  // The server is killed when the first one is opened, and is there again when the conversation was asked for.
  class Opened extends globalThis.WebSocket {
    constructor(url: string) {
      sockets += 1
      isAway = sockets === 1
      super(isAway ? 'ws://127.0.0.1:9' : url)
    }
  }
  const fetch: typeof globalThis.fetch = (input, init) => {
    if (!isAway) return globalThis.fetch(input, init)
    isAway = false
    return Promise.reject(new TypeError('Failed to fetch'))
  }
  const reading = connect({ WebSocket: Opened, fetch }).conversation(id).events()
  expect((await reading.next()).value).toMatchObject({ seq: 1 })
  await reading.return(undefined)
  expect([sockets, isAway]).toEqual([2, false])
})

test('a connection that falls silent is replaced, and heartbeats keep one', async () => {
  await until('a connection that heartbeats keep', async () => {
    await using strange = await startStrange((socket, connections) => {
      socket.send(JSON.stringify({ type: 'ready', after_seq: Math.min(connections - 1, 1) }))
      if (connections === 1) return socket.send(event(1))
      let beats = 0
      // For longer than a connection may be silent.
      const beating = setInterval(() => socket.send(++beats === 100 ? event(2) : '{"type":"heartbeat"}'), 20)
      socket.on('close', () => clearInterval(beating))
    })
    const lost: AgentServerError[] = []
    const client = strange.client({ maxSilenceMs: 1000 })
    const reading = client.conversation('any').events({ onDisconnect: (reason) => lost.push(reason) })
    expect([(await reading.next()).value?.seq, (await reading.next()).value?.seq]).toEqual([1, 2])
    await reading.return(undefined)
    expect(new Set(lost.map(({ message }) => message))).toEqual(new Set(['The stream was silent for too long.']))
    // Both sides are silent while this process is stopped.
    return lost.length === 1
  })
})

test('a reader that does not take the frames loses the connection and no event', async () => {
  const padding = 'x'.repeat(1024 * 1024)
  const cursors: number[] = []
  let closed = 0
  await using strange = await startStrange((socket, _, url) => {
    const after = Number(new URLSearchParams(url.split('?')[1]).get('after_seq'))
    cursors.push(after)
    socket.on('close', () => (closed += 1))
    for (let seq = after + 1; seq <= 24; seq++) socket.send(event(seq, { padding }))
  })
  const reading = strange.client().conversation('any').events()
  const seqs = [(await reading.next()).value?.seq]
  await until('the end of the connection', async () => closed === 1)
  while (seqs.length < 24) seqs.push((await reading.next()).value?.seq)
  await reading.return(undefined)
  expect(seqs).toEqual(Array.from({ length: 24 }, (_, i) => i + 1))
  expect(cursors).toEqual([0, 17])
})

test.each(['no JSON', '[1]x', '7', 'null'])('a frame that is %s says that the server is another one', async (frame) => {
  await using strange = await startStrange((socket) => socket.send(frame))
  expect(await failureOf(strange.client().conversation('any').events())).toMatchObject({ code: 'unexpected_response' })
})

/** The client behind proxies that answer in the server's place, cut, redirect and buffer, and with an older server. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, request as requestWith } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { httpStreamSource } from '../../src/client/events/stream-source.ts'
import { Transport } from '../../src/client/request/transport.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const HTML = '<html>\n<h1>Bad Gateway</h1>'
const page =
  (status: number, headers = {}): Answer =>
  (request, response) =>
    void (request.resume(), response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(HTML))

let server: TestServer
let url = ''
/** What the proxy does with the next requests; then it passes them to the server. */
let answers: Answer[] = []
let requests = 0
const proxy = createServer((request, response) => {
  requests += 1
  const answer = answers.shift() ?? pass
  answer(request, response)
})

const pass: Answer = (request, response) => {
  const { method, url: path, headers } = request
  const forwarded = requestWith(server.url + path, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  request.pipe(forwarded)
}

beforeAll(async () => {
  server = await startServer({ env: { LLM_MODEL: 'none' } })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  url = `http://127.0.0.1:${(proxy.address() as { port: number }).port}`
})
beforeEach(() => void ((answers = []), (requests = 0)))
afterAll(async () => {
  proxy.close()
  proxy.closeAllConnections()
  await server[Symbol.asyncDispose]()
})

const connect = (maxRetries = 3) => createClient({ baseUrl: url, apiKey: KEY, maxRetries })
const failureOf = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)
const unexpected = (status: number, message: RegExp) => ({
  code: 'unexpected_response',
  status,
  message: expect.stringMatching(message),
})

test('an HTML 502 is repeated where that cannot do harm, and a keyed request is executed once', async () => {
  const client = connect()
  answers = [page(502), page(504)]
  const { id } = await client.conversations.create({ user_id: 'once' })
  answers = [page(503)]
  expect(await client.conversations.count({ user_id: 'once' })).toEqual({ count: 1 })
  requests = 0
  answers = [page(502), page(502)]
  expect(await failureOf(client.conversation(id).setConfirmation({ enabled: true }))).toMatchObject(
    unexpected(502, /status 502, text\/html.*begins with: <html> <h1>Bad Gateway/),
  )
  expect(requests).toBe(1)
})

/** Passes the request on, and breaks off its answer. */
const lose: Answer = (request, response) => {
  const { method, url: path, headers } = request
  request.pipe(
    requestWith(server.url + path, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, { ...answer.headers })
      response.write('{"id"')
      response.destroy()
    }),
  )
}

test('a response that was lost after the server has executed the request is asked for again, by its key', async () => {
  const client = connect()
  answers = [lose]
  await client.conversations.create({ user_id: 'lost' })
  expect(await client.conversations.count({ user_id: 'lost' })).toEqual({ count: 1 })
})

test('a message whose answer was lost is stored once, with and without an id, and as the first one', async () => {
  const client = connect()
  answers = [lose, lose]
  const { id } = await client.conversations.create({ initial_message: 'first' })
  const conversation = client.conversation(id)
  answers = [lose, lose]
  await conversation.send('second')
  answers = [lose]
  const third = { params: { id }, body: { message: 'third', client_message_id: 'm-3' } }
  const { event_id } = await client.api.call('postMessage', third)
  expect(await client.api.call('postMessage', third)).toMatchObject({ event_id })
  const events = await conversation.listEvents({ types: ['UserMessage'] }).all()
  expect(events.map(({ content }) => content)).toEqual(
    ['first', 'second', 'third'].map((text) => [{ type: 'text', text }]),
  )
})

test('a 429 of a proxy is repeated', async () => {
  answers = [page(429, { 'retry-after': '0' })]
  expect(await connect().alive()).toEqual({ status: 'ok' })
})

test.each([301, 302, 303, 307, 308])(
  'a redirect with %d is an error that names the target, at once',
  async (status) => {
    answers = [page(status, { location: 'https://login.example/' })]
    expect(await failureOf(connect().conversations.create())).toMatchObject(
      unexpected(status, /redirects to https:\/\/login\.example\//),
    )
    expect(requests).toBe(1)
  },
)

test('a page with status 200 is not taken for a reply, and one that never ends is not waited for', async () => {
  answers = [page(200)]
  expect(await failureOf(connect().info())).toMatchObject(unexpected(200, /not from an agent-server/))
  const endless: Answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    const piece = Buffer.alloc(64 * 1024, 'x')
    const write = () => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', write)
    write()
  }
  answers = [endless]
  expect(await failureOf(connect().info())).toMatchObject(unexpected(200, /xxx/))
  answers = [endless]
  const events = connect().conversation('x').events()
  expect(await failureOf(events.next())).toMatchObject(unexpected(200, /text\/html/))
})

test('JSON that a proxy has cut, or that has no type, is not taken for a reply', async () => {
  answers = [(_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"status": "o')]
  expect(await failureOf(connect().alive())).toMatchObject(unexpected(200, /begins with: \{"status": "o/))
  answers = [(_, response) => void response.writeHead(400).end()]
  expect(await failureOf(connect().alive())).toMatchObject(unexpected(400, /no content type/))
})

test('a stream survives error pages and streams that are cut in the middle of an event', async () => {
  const client = connect()
  const conversation = client.conversation((await client.conversations.create()).id)
  for (const name of ['a', 'b', 'c']) await conversation.postEvent({ name })
  const stored = (await conversation.listEvents().all()).map(({ seq }) => seq)
  answers = [
    (request, response) => {
      requestWith(server.url + request.url, { headers: request.headers }, (answer) => {
        response.writeHead(200, answer.headers)
        answer.once('data', (piece: Buffer) => {
          response.write(piece.subarray(0, piece.length - 5))
          answer.destroy()
          response.end()
        })
      }).end()
    },
    page(502),
    page(503, { 'retry-after': '0' }),
  ]
  const seqs: number[] = []
  for await (const { seq } of conversation.events()) if (seqs.push(seq) === stored.length) break
  expect(seqs).toEqual(stored)
  expect(answers).toEqual([])
})

test('a proxy that buffers the stream is reported, instead of waiting forever', async () => {
  answers = [(_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()]
  const transport = new Transport({ baseUrl: url, apiKey: KEY })
  const client = createClient({ baseUrl: url, streamSource: httpStreamSource(transport, { maxSilenceMs: 50 }) })
  expect(await failureOf(client.conversation('x').events().next())).toMatchObject({
    code: 'unexpected_response',
    message: expect.stringMatching(/a proxy buffers it/),
  })
})

test('a server that accepts connections and does nothing is reported, instead of waiting forever', async () => {
  answers = [() => {}]
  const transport = new Transport({ baseUrl: url, apiKey: KEY, maxRetries: 0 })
  const streamSource = httpStreamSource(transport, { maxAnswerMs: 50 })
  const client = createClient({ baseUrl: url, maxRetries: 0, streamSource })
  expect(await failureOf(client.conversation('x').events().next())).toMatchObject({
    code: 'connection_failed',
    message: expect.stringMatching(/did not answer in time/),
  })
})

test('a key that no header can have is refused, and not quoted', () => {
  expect(() => createClient({ baseUrl: url, apiKey: 'a-secret\nkey' })).toThrow(/^apiKey has a character/)
})

test('an operation that the server does not have is named', async () => {
  const older = createClient({ baseUrl: `${url}/api`, apiKey: KEY })
  expect(await failureOf(older.conversation('x').compact())).toMatchObject({
    code: 'not_found',
    status: 404,
    message: expect.stringMatching(/no operation compactConversation.*older than this client.*Leave out \/api/),
  })
  expect(requests).toBe(1)
})

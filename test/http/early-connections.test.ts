/** Connections that come before there is an HTTP server. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, createServer as createListener } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { EarlyConnections } from '../../src/http/early-connections.ts'
import type { Listening } from '../../src/http/listen.ts'
import { LocalConnections } from '../../src/http/local/local-connections.ts'
import { listenOn } from '../../src/http/listen.ts'
import { setHttp } from './fixtures.ts'
import { openSocket, sayTo } from './raw.ts'

const ALIVE = 'GET /alive HTTP/1.1\r\nhost: a\r\n'

let listening: Listening
let server: Server | undefined
afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
  await listening.close()
})

async function listen(host = '127.0.0.1'): Promise<string> {
  listening = await listenOn({ host, port: 0 })
  return listening.url
}

/** Says what it was asked. */
async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.end(`${request.method} ${request.url} ${await text(request)};`)
}

async function serve(): Promise<void> {
  server = createServer((request, response) => void echo(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  listening.serve(server)
}

/** Resolves when the other side has accepted the connection and read what was written. */
async function open(url: string, said = ''): Promise<Socket> {
  const socket = openSocket(url)
  await once(socket, 'connect')
  if (said !== '') await new Promise((resolve) => socket.write(said, resolve))
  return socket
}

test('GET /alive is answered at once, with the headers of the later answer, and its connection ends', async () => {
  const [head = '', body] = (await sayTo(await listen(), `${ALIVE}\r\n`)).split('\r\n\r\n')
  await using http = await setHttp()
  const later = await http.call('GET', '/alive')
  const { 'x-request-id': _, ...headers } = later.headers
  const [status, ...lines] = head.split('\r\n')
  expect([status, body]).toEqual(['HTTP/1.1 200 OK', later.text])
  expect(Object.fromEntries(lines.map((line) => line.split(': ')))).toEqual({
    ...headers,
    'content-length': String(later.text.length),
    connection: 'close',
    date: expect.stringMatching(/ GMT$/),
  })
})

test.each([
  ['another request', 'GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 'GET /x ;'],
  ['of a page elsewhere', `${ALIVE}origin: http://b\r\nconnection: close\r\n\r\n`, 'GET /alive ;'],
  ['with a body', `${ALIVE}content-length: 2\r\nconnection: close\r\n\r\nhi`, 'GET /alive hi;'],
  [
    'pipelined',
    `${ALIVE}\r\nPOST /y HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi`,
    'POST /y hi;',
  ],
  [
    'a large one',
    `POST /z HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\nconnection: close\r\n\r\n${'x'.repeat(1e6)}`,
    'x;',
  ],
])('%s waits, and is answered whole', async (_, request, end) => {
  const answer = sayTo(await listen(), request)
  await serve()
  expect(await answer).toMatch(
    new RegExp(`^HTTP/1.1 200 OK[^]*${end.replaceAll('.', String.raw`\.`)}(\r\n0\r\n\r\n)?$`),
  )
})

test('a request in pieces is answered whole, wherever it is cut', async () => {
  const url = await listen()
  const request = 'POST /alive HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody'
  const cuts = Array.from({ length: request.length - 1 }, (_, at) => at)
  const sockets = await Promise.all(cuts.map((at) => open(url, request.slice(0, at))))
  const answers = sockets.map((socket) => text(socket))
  await serve()
  for (const [at, socket] of sockets.entries()) socket.write(request.slice(cuts[at]))
  for (const answer of await Promise.all(answers)) expect(answer).toContain('POST /alive body;')
})

test('a client that leaves meanwhile leaves nothing behind, and one that says nothing is served later', async () => {
  const url = await listen()
  const gone = await open(url, 'GET /x HTTP/1.1\r\n')
  const reset = await open(url)
  const silent = await open(url)
  gone.destroy()
  reset.resetAndDestroy()
  await serve()
  silent.write('GET /late HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  expect(await text(silent)).toContain('GET /late ;')
  const { promise, resolve } = Promise.withResolvers<number>()
  server!.getConnections((_, count) => resolve(count))
  expect(await promise).toBe(0)
})

test('clients that reset their connections, before or with the answer, end nothing else', async () => {
  const url = await listen()
  for (let n = 0; n < 20; n++) {
    const hasty = await open(url, `${ALIVE}\r\n`)
    const patient = await open(url, `${ALIVE}\r\n`)
    hasty.resetAndDestroy()
    await once(patient, 'data')
    patient.resetAndDestroy()
  }
  expect(await sayTo(url, `${ALIVE}\r\n`)).toContain('200 OK')
})

test('a start that fails ends the connections that wait, on each address', async () => {
  const url = await listen('localhost')
  const { port } = new URL(url)
  const sockets = await Promise.all([open(url, 'GET /x HTTP/1.1\r\n'), open(url)])
  const other = connect(Number(port), '::1').on('error', () => {})
  await once(other, 'connect')
  const ended = [...sockets, other].map((socket) => once(socket, 'close'))
  await listening.close()
  expect(await Promise.all(ended)).toHaveLength(3)
})

test('more than a thousand that wait are refused', async () => {
  const url = await listen()
  const sockets = await Promise.all(Array.from({ length: 1001 }, () => open(url)))
  const late = await open(url, 'GET /x HTTP/1.1\r\nhost: a\r\n\r\n')
  // A reset, or an end if the server closes it before the request has arrived.
  expect(await text(late).catch((error: NodeJS.ErrnoException) => error.code)).toMatch(/^(ECONNRESET)?$/)
  for (const socket of sockets) socket.destroy()
})

test('a connection that waits too long is closed, whatever it has said', async () => {
  const connections = new EarlyConnections({ waitMs: 50 })
  const listener = createListener({ allowHalfOpen: true }, (socket) => connections.add(socket)).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const sockets = await Promise.all([open(url), open(url, 'GET /x HTTP/1.1\r\n')])
  expect(await Promise.all(sockets.map((socket) => once(socket, 'close')))).toHaveLength(2)
  listener.close()
})

test('only a connection that the server has accepted itself is a local one, and none that was passed to it', async () => {
  const url = await listen()
  const asking = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
  const early = await open(url, asking)
  const connections = new LocalConnections()
  server = createServer(({ socket }, response) => response.end(`local: ${connections.has(socket)}`))
  connections.watch(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  listening.serve(server)
  expect(await text(early)).toContain('local: false')
  expect(await text(await open(url, asking))).toContain('local: false')
  const { port } = server.address() as AddressInfo
  expect(await text(await open(`http://127.0.0.1:${port}`, asking))).toContain('local: true')
})

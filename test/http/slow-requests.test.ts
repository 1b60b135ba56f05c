/** Clients that send slowly, over real sockets: none holds a connection for ever. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setInterval as every } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { KEY, setHttp } from './fixtures.ts'
import { answersIn, drip, openSocket } from './raw.ts'

const TIMES = { headersMs: 300, checkMs: 50, jsonMs: 300, silenceMs: 300, stallMs: 300 }

/** As `drip`, to a server of its own, which takes it for the client's fault. */
async function dripAlone(beginning: string): Promise<string> {
  await using http = await setHttp({ http: { times: TIMES } })
  const said = await drip(await http.listen(), beginning)
  expect(http.bench.logged.join(''), 'it is the client’s fault').not.toMatch(/"level":[5-6]0|"level":"(error|fatal)"/)
  return said
}

const head = (type: string) =>
  `POST /conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: ${type}\r\nContent-Length: 1000\r\n\r\n`

test.each([
  ['the head', 'GET /info HTTP/1.1\r\nHost: x\r\nX-Slow: '],
  ['a JSON body', head('application/json')],
])('%s has to arrive in time', async (_, beginning) => {
  const [start, body] = (await dripAlone(beginning)).split('\r\n\r\n')
  expect(start).toMatch(/^HTTP\/1\.1 408 /)
  expect(JSON.parse(body!)).toEqual({ error: 'request_timeout', message: expect.any(String) })
})

test('a client that sends no byte at all is not waited for', async () => {
  await using http = await setHttp({ http: { times: TIMES } })
  const { port, hostname } = new URL(await http.listen())
  expect(await text(connect(Number(port), hostname))).toMatch(/^(HTTP\/1\.1 408 |$)/)
})

test('a request that comes in time is not ended for those that do not', async () => {
  await using http = await setHttp({ http: { times: { ...TIMES, headersMs: 60_000, jsonMs: 60_000 } } })
  const url = await http.listen()
  const body = JSON.stringify({ llm_config: { model: 'm' }, title: 'x'.repeat(150) })
  const response = await fetch(`${url}/conversations`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  expect(response.status).toBe(201)
})

test('a large body may take its time as long as it comes, and is ended when nothing of it does', async () => {
  await using http = await setHttp({ http: { times: { ...TIMES, headersMs: 60_000, jsonMs: 4000, silenceMs: 8000 } } })
  http.app.addContentTypeParser('application/octet-stream', async (_request: unknown, payload: Readable) =>
    text(payload),
  )
  http.app.post('/take', { config: { scopes: ['write'], ofProfiles: 'free' } }, async (request) => ({
    bytes: String(request.body).length,
  }))
  const { port, hostname } = new URL(await http.listen())
  const head = `POST /take HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/octet-stream\r\n`
  const send = (bytes: number) => {
    const socket = connect(Number(port), hostname)
    socket.write(`${head}Content-Length: ${bytes}\r\n\r\n`)
    return socket
  }
  const slow = send(100_000)
  const answer = text(slow)
  // It takes longer than one that began later, of which nothing comes.
  const silent = { isEnded: false }
  const ended = text(send(10)).finally(() => (silent.isEnded = true))
  let sent = 0
  for await (const _ of every(20)) {
    if (silent.isEnded) break
    slow.write('x')
    sent++
  }
  expect(await ended).toMatch(/^HTTP\/1\.1 408 /)
  slow.write('x'.repeat(100_000 - sent))
  expect(await answer).toContain('{"bytes":100000}')
})

test('an endless body keeps no connection open, whatever its type, after the time limit of a JSON body', async () => {
  await using http = await setHttp({ http: { times: TIMES } })
  const url = await http.listen()
  const ask = (start: string, type: string) =>
    drip(url, `${start} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 100000\r\n\r\n`)
  for (const type of ['application/json', 'application/octet-stream', 'multipart/form-data; boundary=x'])
    for (const start of ['POST /conversations', 'GET /alive', 'PUT /conversations/x/files/y', 'GET /%zz'])
      expect(answersIn(await ask(start, type)).map(({ status }) => status)).toHaveLength(1)
})

test('a client that does not read its response is disconnected', async () => {
  await using http = await setHttp({ http: { times: TIMES } })
  http.app.get('/large', { config: { public: true } }, async () => Buffer.alloc(64 * 1024 * 1024))
  const url = await http.listen()
  const connected = once(http.app.server, 'connection')
  const socket = openSocket(url)
  socket.pause()
  socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n')
  const open = () => new Promise<number>((resolve) => http.app.server.getConnections((_error, count) => resolve(count)))
  await connected
  await expect.poll(open).toBe(0)
  socket.destroy()
})

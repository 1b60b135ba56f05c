/** Clients that send slowly, over real sockets: none holds a connection for ever. */
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setInterval as every } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { KEY, setHttp } from './fixtures.ts'

const TIMES = { headersMs: 300, checkMs: 50, jsonMs: 300, silenceMs: 300 }

/** Sends the beginning, then a byte now and then, until the server ends it; answers what it said. */
async function drip(beginning: string): Promise<string> {
  await using http = await setHttp({ http: { times: TIMES } })
  const { port, hostname } = new URL(await http.listen())
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {}) // a byte that comes too late
  socket.write(beginning)
  const answer = text(socket)
  const over = new AbortController()
  void answer.finally(() => over.abort())
  try {
    for await (const _ of every(40, undefined, { signal: over.signal })) socket.write('x')
  } catch {
    // It is over.
  }
  const said = await answer
  expect(http.bench.logged.join(''), 'it is the client’s fault').not.toMatch(/"level":[5-6]0|"level":"(error|fatal)"/)
  return said
}

const head = (type: string) =>
  `POST /conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: ${type}\r\nContent-Length: 1000\r\n\r\n`

test.each([
  ['the head', 'GET /info HTTP/1.1\r\nHost: x\r\nX-Slow: '],
  ['a JSON body', head('application/json')],
])('%s has to arrive in time', async (_, beginning) => {
  const [start, body] = (await drip(beginning)).split('\r\n\r\n')
  expect(start).toMatch(/^HTTP\/1\.1 408 /)
  expect(JSON.parse(body!)).toEqual({ error: 'request_timeout', message: expect.any(String) })
})

test('a client that sends no byte at all is not waited for', async () => {
  await using http = await setHttp({ http: { times: TIMES } })
  const { port, hostname } = new URL(await http.listen())
  expect(await text(connect(Number(port), hostname))).toMatch(/^(HTTP\/1\.1 408 |$)/)
})

test('a request that comes in time is not ended for those that do not', async () => {
  await using http = await setHttp({ http: { times: TIMES } })
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
  await using http = await setHttp({ http: { times: TIMES } })
  http.app.addContentTypeParser('application/octet-stream', async (_request: unknown, payload: Readable) =>
    text(payload),
  )
  http.app.post('/take', async (request) => ({ bytes: String(request.body).length }))
  const { port, hostname } = new URL(await http.listen())
  const head = `POST /take HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/octet-stream\r\n`
  const send = (bytes: number) => {
    const socket = connect(Number(port), hostname)
    socket.write(`${head}Content-Length: ${bytes}\r\n\r\n`)
    return socket
  }
  const slow = send(10)
  const answer = text(slow)
  let sent = 0
  for await (const _ of every(80)) {
    slow.write('x')
    if (++sent === 10) break
  }
  expect(await answer).toContain('{"bytes":10}')
  expect(await text(send(10))).toMatch(/^HTTP\/1\.1 408 /)
})

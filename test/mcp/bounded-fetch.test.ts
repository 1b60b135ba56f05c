/** What servers with a URL may send: messages of a bounded size, from permitted addresses. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { boundedFetch } from '../../src/mcp/transports/bounded-fetch.ts'
import { createGuardedFetch } from '../../src/security/guarded-fetch.ts'

const MIB = 1024 ** 2

/** Without an end. */
function* pieces(): Generator<string> {
  for (;;) yield 'x'.repeat(MIB)
}

const server = createServer((request, response) => {
  const type = request.url === '/json' ? 'application/json' : 'text/event-stream'
  if (request.url === '/redirect') return response.writeHead(307, { location: 'http://10.0.0.1/' }).end()
  response.writeHead(200, { 'content-type': type })
  if (request.url === '/events') return response.end(`data: ${'x'.repeat(MIB)}\r\n\r\n`.repeat(20))
  pipeline(Readable.from(pieces()), response, () => {}) // the client closes it
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const guarded = createGuardedFetch({ allow: ['127.0.0.1'] })
afterAll(async () => {
  await guarded.close()
  server.closeAllConnections()
  server.close()
})
const permit = () => Promise.resolve()
const fetchWith = (may: typeof permit, onFault: (reason: string) => void = () => {}) =>
  boundedFetch({ fetch: guarded.fetch, permit: may, onFault })

test.each(['/json', '/endless-event'])('a message without an end is cut off: %s', async (path) => {
  const response = await fetchWith(permit)(base + path)
  await expect(response.text()).rejects.toThrow(/more than 16777216 bytes/)
})

test('many events may together be larger', async () => {
  const response = await fetchWith(permit)(`${base}/events`)
  expect((await response.text()).length).toBeGreaterThan(20 * MIB)
})

test('a redirect is not followed, and an address that is not permitted is not reached', async () => {
  const fetch = fetchWith(permit)
  expect((await fetch(`${base}/redirect`)).status).toBe(307)
  await expect(fetch('http://10.0.0.1/')).rejects.toMatchObject({ cause: { code: 'ADDRESS_REFUSED' } })
  const closed = fetchWith(() => Promise.reject(new Error('not permitted')))
  await expect(closed(`${base}/events`)).rejects.toThrow('not permitted')
})

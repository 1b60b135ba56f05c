/** What the server's log and the answers say of each request: who, what, and nothing that may be secret. */
import { once } from 'node:events'
import { afterAll, describe, expect, test } from 'vitest'
import { createAuthenticator } from '../../../src/http/guards/auth.ts'
import { listenOn } from '../../../src/http/listen.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { KEY, OLD_KEY, setHttp } from '../fixtures.ts'
import type { HttpBench } from '../fixtures.ts'
import { openSocket } from '../raw.ts'

type Line = Record<string, unknown>

const linesOf = (http: HttpBench, msg: string): Line[] =>
  http.bench.logged.map((line) => JSON.parse(line) as Line).filter((line) => line['msg'] === msg)

const { fingerprint } = await createAuthenticator([KEY])(`Bearer ${KEY}`, {})

test('a request that changes something leaves one line with key, action and conversation, and no body', async () => {
  await using http = await setHttp()
  const id = await http.create({ title: 'hunter2' })
  await http.call(
    'PUT',
    `/conversations/${id.toUpperCase()}/config`,
    { title: 'hunter2' },
    { 'x-request-id': 'mine-1' },
  )
  await http.call('GET', `/conversations/${id}`)
  await http.call('DELETE', `/conversations/${id}`, undefined, { authorization: `Bearer ${OLD_KEY}` })
  const lines = linesOf(http, 'audit')
  expect(lines).toMatchObject([
    {
      method: 'POST',
      route: '/conversations',
      status: 201,
      conversation_id: id,
      address: '127.0.0.1',
      key: fingerprint,
    },
    { method: 'PUT', route: '/conversations/:id/config', status: 200, conversation_id: id, req_id: 'mine-1' },
    { method: 'DELETE', status: 204, conversation_id: id, key: expect.stringMatching(/^[0-9a-f]{6}$/) },
  ])
  expect(lines[2]!['key']).not.toBe(fingerprint)
  expect(http.bench.logged.join('')).not.toMatch(new RegExp(`hunter2|${KEY}|${OLD_KEY}`))
})

test('a refused key leaves one line, with its fingerprint', async () => {
  await using http = await setHttp()
  const id = uuid7()
  await http.call('GET', `/conversations/${id}`, undefined, { authorization: 'Bearer no-such-key' })
  await http.call('GET', '/info', undefined, { authorization: '' })
  const [wrong, none] = linesOf(http, 'audit')
  expect(wrong).toMatchObject({ method: 'GET', status: 401, conversation_id: id, key: expect.any(String) })
  expect(wrong!['key']).not.toBe(fingerprint)
  expect(none).toMatchObject({ status: 401, route: '/info' })
  expect(none).not.toHaveProperty('key')
  expect(http.bench.logged.join('')).not.toContain('no-such-key')
})

test('a request that only looks says from where it came and with which key, too', async () => {
  await using http = await setHttp({ http: { trustProxy: ['127.0.0.1'] } })
  const id = await http.create()
  const forwarded = { 'x-forwarded-for': '203.0.113.9' }
  for (const url of ['/info', `/conversations/${id}`, `/conversations/${id}/events`, '/nothing', '/alive'])
    await http.call('GET', url, undefined, forwarded)
  await http.call('HEAD', '/info', undefined, forwarded)
  const lines = linesOf(http, 'request')
  expect(lines.map(({ method, route, address, key }) => [method, route, address, key])).toEqual([
    ['GET', '/info', '203.0.113.9', fingerprint],
    ['GET', '/conversations/:id', '203.0.113.9', fingerprint],
    ['GET', '/conversations/:id/events', '203.0.113.9', fingerprint],
    ['GET', undefined, '203.0.113.9', fingerprint],
    ['GET', '/alive', '203.0.113.9', undefined],
    ['HEAD', '/info', '203.0.113.9', fingerprint],
  ])
  expect(http.bench.logged.join('')).not.toContain(KEY)
})

test('a client that leaves before its answer leaves the same lines, with its address', async () => {
  await using http = await setHttp({ script: () => ({ text: 'Done.', delay_ms: 300 }) })
  const id = await http.create()
  await http.listen()
  const listening = await listenOn({ host: '127.0.0.1', port: 0 })
  listening.serve(http.app.server)
  const send = (head: string, body = '') => {
    const socket = openSocket(listening.url)
    const length = `host: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
    socket.write(`${head} HTTP/1.1\r\nauthorization: Bearer ${KEY}\r\n${length}\r\n\r\n${body}`)
    return socket
  }
  const message = JSON.stringify({ message: { role: 'user', content: 'Go.' } })
  await http.call('POST', `/conversations/${id}/messages`, message)
  const waiting = send(`POST /conversations/${id}/run`, '{"wait":true}')
  const following = send(`GET /conversations/${id}/events/stream`)
  await once(following, 'data')
  waiting.resetAndDestroy()
  following.resetAndDestroy()
  const routesOf = (msg: string) => linesOf(http, msg).map(({ method, route, address }) => [method, route, address])
  const of = (path: string) => `/conversations/:id${path}`
  await expect.poll(() => routesOf('request')).toContainEqual(['GET', of('/events/stream'), '127.0.0.1'])
  await expect.poll(() => routesOf('audit')).toContainEqual(['POST', of('/run'), '127.0.0.1'])
  await listening.close()
})

test('every answer has a request id, which is the one in the log', async () => {
  await using http = await setHttp()
  for (const [method, url, headers] of [
    ['GET', '/info', {}],
    ['GET', '/alive', {}],
    ['GET', '/info', { authorization: '' }],
    ['GET', '/nowhere', {}],
    ['GET', '/%zz', {}],
  ] as const) {
    const own = await http.call(method, url, undefined, { ...headers, 'x-request-id': 'A-client.s_own-1' })
    expect(own.headers['x-request-id'], url).toBe('A-client.s_own-1')
    const given = await http.call(method, url, undefined, headers)
    expect(given.headers['x-request-id'], url).toMatch(/^[0-9a-f]{8}-/)
    if (url === '/info') expect(http.bench.logged.at(-1)).toContain(String(given.headers['x-request-id']))
  }
})

describe('an id of a client that is not short and plain', () => {
  const shared = setHttp()
  afterAll(async () => (await shared)[Symbol.asyncDispose]())

  test.each(['', 'x'.repeat(129), 'a b', 'a"b', 'é', '<script>'])('is not used: %j', async (id) => {
    const http = await shared
    const answer = await http.call('GET', '/info', undefined, { 'x-request-id': id })
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f]{8}-/)
  })
})

test('the address is the connection’s, unless a proxy that is trusted says otherwise', async () => {
  const forwarded = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7', authorization: '' }
  await using direct = await setHttp()
  await direct.call('GET', '/info', undefined, forwarded)
  expect(linesOf(direct, 'audit')[0]).toMatchObject({ address: '127.0.0.1' })
  await using behind = await setHttp({ http: { trustProxy: ['127.0.0.1'] } })
  await behind.call('GET', '/info', undefined, forwarded)
  expect(linesOf(behind, 'audit')[0], 'the nearest that is no proxy of ours').toMatchObject({ address: '198.51.100.7' })
  await using chain = await setHttp({ http: { trustProxy: ['127.0.0.0/8', '198.51.100.0/24'] } })
  await chain.call('GET', '/info', undefined, forwarded)
  expect(linesOf(chain, 'audit')[0]).toMatchObject({ address: '203.0.113.9' })
})

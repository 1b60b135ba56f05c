/** The headers for browsers: which pages may call, and what an answer may do in them. */
import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { KEY, expectProblem, setHttp } from './fixtures.ts'

const ORIGIN = 'https://app.example.com'
const preflight = { authorization: '', origin: ORIGIN, 'access-control-request-method': 'PUT' }

describe('without OPENHANDS_CORS_ORIGINS', () => {
  test('no page of another origin may call, and a preflight is an ordinary request', async () => {
    await using http = await setHttp()
    const answer = await http.call('GET', '/info', undefined, { origin: ORIGIN })
    expect(Object.keys(answer.headers).join()).not.toContain('access-control')
    expectProblem(await http.call('OPTIONS', '/conversations', undefined, preflight), 401, 'unauthorized')
    expectProblem(await http.call('OPTIONS', '/conversations'), 405, 'method_not_allowed')
  })
})

describe('with an origin allowed', () => {
  const http = { corsOrigins: [ORIGIN, 'http://localhost:5173'] }

  test('its preflight is answered without a key, even if the method or the route does not exist', async () => {
    await using bench = await setHttp({ http })
    for (const url of ['/conversations', `/conversations/${uuid7()}/config`, '/nowhere']) {
      const { status, headers, text } = await bench.call('OPTIONS', url, undefined, preflight)
      expect({ status, text }, url).toEqual({ status: 204, text: '' })
      expect(headers['access-control-allow-origin']).toBe(ORIGIN)
      expect(headers['access-control-allow-methods']).toMatch(/GET.*POST.*PUT.*DELETE/)
      expect(headers['access-control-allow-headers']).toMatch(
        /Authorization.*Idempotency-Key.*Last-Event-ID.*X-Conversation-Id/,
      )
      expect(headers['access-control-allow-credentials']).toBeUndefined()
    }
  })

  test('its pages read answers, refusals too, with the headers they need', async () => {
    await using bench = await setHttp({ http })
    for (const [url, headers] of [
      ['/info', {}],
      ['/info', { authorization: '' }],
      ['/nowhere', {}],
    ] as const) {
      const answer = await bench.call('GET', url, undefined, { origin: ORIGIN, ...headers })
      expect(answer.headers['access-control-allow-origin']).toBe(ORIGIN)
      expect(answer.headers['vary']).toContain('Origin')
      expect(answer.headers['access-control-expose-headers']).toMatch(
        /Location.*Retry-After.*X-Should-Retry.*X-Request-Id/,
      )
    }
  })

  test.each(['https://app.example.com.evil.example', 'http://app.example.com', 'https://app.example.com:8443', 'null'])(
    '%s is another one',
    async (origin) => {
      await using bench = await setHttp({ http })
      const answer = await bench.call('GET', '/info', undefined, { origin })
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      const asked = await bench.call('OPTIONS', '/info', undefined, { ...preflight, origin })
      expectProblem(asked, 401, 'unauthorized')
    },
  )

  test('a route still distinguishes "no such route" from "method not allowed"', async () => {
    await using bench = await setHttp({ http })
    expectProblem(await bench.call('GET', '/nowhere', undefined, { origin: ORIGIN }), 404, 'not_found')
    const answer = await bench.call('DELETE', '/info', undefined, { origin: ORIGIN })
    expectProblem(answer, 405, 'method_not_allowed')
    expect(answer.headers['allow']).toBe('GET, HEAD')
  })

  test('its pages may read the stream', async () => {
    await using bench = await setHttp({ http })
    const id = await bench.create()
    const url = await bench.listen()
    const abort = new AbortController()
    const response = await fetch(`${url}/conversations/${id}/events/stream`, {
      headers: { authorization: `Bearer ${KEY}`, origin: ORIGIN },
      signal: abort.signal,
    })
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    abort.abort()
  })
})

test('with * any page may call the API', async () => {
  await using http = await setHttp({ http: { corsOrigins: ['*'] } })
  const answer = await http.call('GET', '/info', undefined, { origin: 'http://anything.example' })
  expect(answer.headers['access-control-allow-origin']).toBe('*')
})

test('no response may be executed, framed or interpreted as another type', async () => {
  await using http = await setHttp()
  for (const [url, headers] of [
    ['/info', {}],
    ['/info', { authorization: '' }],
    ['/alive', {}],
    ['/nowhere', {}],
  ] as const) {
    const answer = await http.call('GET', url, undefined, headers)
    expect(answer.headers['content-security-policy'], url).toMatch(/default-src 'none';.*frame-ancestors 'none'/)
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    expect(answer.headers['strict-transport-security']).toBeUndefined()
  }
})

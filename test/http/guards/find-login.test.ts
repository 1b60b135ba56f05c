/** Where a request with a login comes from: a page of this server, by what browsers say of it. */
import { describe, expect, test } from 'vitest'
import type { HttpBench } from '../fixtures.ts'
import { KEY, setHttp } from '../fixtures.ts'

const HOST = 'agents.example.org:8000'
const OWN = `http://${HOST}`

const TICKET = { firehose: true }

type Headers = Record<string, string>

/** Returns the status, and the body. */
async function post(http: HttpBench, url: string, headers: Headers, payload: object) {
  const {
    statusCode,
    body,
    headers: answer,
  } = await http.app.inject({
    method: 'POST',
    url,
    headers: { host: HOST, ...headers },
    payload,
  })
  return { status: statusCode, body: JSON.parse(body), cookie: String(answer['set-cookie']).split(';', 1)[0] ?? '' }
}

/** As the browser of another machine sends it over http: without `Sec-Fetch-Site`. */
async function logIn(http: HttpBench): Promise<Headers> {
  const { status, body, cookie } = await post(http, '/logins', { origin: OWN }, { key: KEY })
  expect(status).toBe(201)
  return { cookie, 'x-login': body.value }
}

describe('over http from another machine, where browsers send no Sec-Fetch-Site', () => {
  test('a login that the operator permits does something for the own page', async () => {
    await using http = await setHttp({ insecureLogin: true })
    const login = await logIn(http)
    expect((await post(http, '/stream-tickets', { ...login, origin: OWN }, TICKET)).status).toBe(201)
  })

  test.each([
    ['another host', { origin: 'http://evil.example.org:8000' }],
    ['another port', { origin: 'http://agents.example.org:8001' }],
    ['another scheme', { origin: `https://${HOST}` }],
    ['no origin', {}],
    ['an opaque origin', { origin: 'null' }],
    ['another site, whatever its origin', { origin: OWN, 'sec-fetch-site': 'cross-site' }],
  ])('it does nothing for a page of %s', async (_name, headers: Headers) => {
    await using http = await setHttp({ insecureLogin: true })
    const login = await logIn(http)
    const { status, body } = await post(http, '/stream-tickets', { ...login, ...headers }, TICKET)
    expect([status, body.error]).toEqual([403, 'origin_refused'])
  })
})

test('an origin is not enough where browsers send Sec-Fetch-Site, and another one makes no login', async () => {
  await using http = await setHttp()
  const own = { host: 'localhost:8000', origin: 'http://localhost:8000' }
  const { status, body, cookie } = await post(
    http,
    '/logins',
    { ...own, 'sec-fetch-site': 'same-origin' },
    { key: KEY },
  )
  expect(status).toBe(201)
  const login = { ...own, cookie, 'x-login': body.value }
  for (const [path, headers, content] of [
    ['/stream-tickets', login, TICKET],
    ['/logins', { ...own, origin: 'http://localhost:8001' }, { key: KEY }],
  ] as const) {
    const refusal = await post(http, path, headers, content)
    expect([refusal.status, refusal.body.error]).toEqual([403, 'origin_refused'])
  }
})

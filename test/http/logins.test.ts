/** Logins: both halves are needed, no other page can use them, and they end with their key, their time, or on request. */
import { describe, expect, test } from 'vitest'
import { connectAs } from '../support/socket.ts'
import type { Answer, HttpBench } from './fixtures.ts'
import { KEY, OLD_KEY, expectProblem, setHttp } from './fixtures.ts'

type Headers = Record<string, string>

/** The bench sends the master key unless it is told not to. */
const NO_KEY = { authorization: '' }
const FROM_OWN_PAGE = { 'sec-fetch-site': 'same-origin' }

function call(http: HttpBench, method: string, path: string, headers: Headers, body?: unknown): Promise<Answer> {
  const { authorization: _, ...rest } = headers
  return http.app
    .inject({
      method: method as 'GET',
      url: path,
      headers: { host: 'localhost:8000', ...(body !== undefined && { 'content-type': 'application/json' }), ...rest },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    .then((response) => ({
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      body: response.body ? JSON.parse(response.body) : undefined,
    }))
}

type LoggedIn = { readonly id: string; readonly cookie: string; readonly value: string; readonly both: Headers }

function halvesOf({ status, body, headers, text }: Answer): LoggedIn {
  expect(status, text).toBe(201)
  const cookie = String(headers['set-cookie']).split(';', 1)[0]!
  return { id: body.id, cookie, value: body.value, both: { cookie, 'x-login': body.value } }
}

const logIn = async (http: HttpBench, body: object = { key: KEY }, headers: Headers = FROM_OWN_PAGE) =>
  halvesOf(await call(http, 'POST', '/logins', headers, body))

const makeKey = async (http: HttpBench, fields: object) =>
  (await http.call('POST', '/keys', { name: 'a key', scopes: ['read', 'write'], ...fields })).body as {
    id: string
    key: string
  }

describe('a login', () => {
  test('works with both halves, and with neither alone', async () => {
    await using http = await setHttp()
    const { id, cookie, value, both } = await logIn(http)
    const me = await call(http, 'GET', '/me', both)
    expect([me.status, me.body]).toEqual([200, expect.objectContaining({ kind: 'master', login_id: id })])
    const other = await logIn(http)
    for (const wrong of [
      { cookie },
      { 'x-login': value },
      { cookie, 'x-login': other.value },
      { cookie: `${cookie}x`, 'x-login': value },
      { cookie: cookie.replace('=', 'x='), 'x-login': value },
      { cookie: `__Host-${cookie}`, 'x-login': value },
    ] as Headers[])
      expectProblem(await call(http, 'GET', '/me', wrong), 401, 'unauthorized')
  })

  test('is found behind cookies of the same name that a server on another port has set', async () => {
    await using http = await setHttp()
    const { cookie, value } = await logIn(http)
    const [name] = cookie.split('=')
    const planted = Array.from({ length: 20 }, (_, index) => `${name}=planted-${index}`)
    const both = { cookie: ['a=b', ...planted, cookie].join('; '), 'x-login': value }
    expect((await call(http, 'GET', '/me', both)).status).toBe(200)
  })

  test.each(['cross-site', 'same-site', 'none', undefined])(
    'changes nothing for a page with Sec-Fetch-Site %s, and reads',
    async (site) => {
      await using http = await setHttp()
      const { both } = await logIn(http)
      const headers = { ...both, ...(site !== undefined && { 'sec-fetch-site': site }) }
      expectProblem(await call(http, 'POST', '/conversations', headers, {}), 403, 'origin_refused')
      expect((await http.call('GET', '/conversations/count')).body.count).toBe(0)
      expect((await call(http, 'GET', '/conversations', headers)).status).toBe(200)
    },
  )

  test('changes something for a page of the server, and the log names it', async () => {
    await using http = await setHttp()
    const { key } = await makeKey(http, { name: 'dashboard' })
    const { id, both } = await logIn(http, { key })
    const path = `/conversations/${await http.create()}`
    const changed = await call(http, 'PUT', `${path}/config`, { ...both, ...FROM_OWN_PAGE }, { title: 'a title' })
    expect(changed.status, changed.text).toBe(200)
    const lines = http.bench.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'audit',
        route: '/conversations/:id/config',
        login_id: id,
        key_name: 'dashboard',
      }),
    )
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'audit', route: '/logins', key_name: 'dashboard' }))
    expect(http.bench.logged.join()).not.toContain(both['x-login'])
  })

  test('cannot be made by a page of another site', async () => {
    await using http = await setHttp()
    for (const site of ['cross-site', 'same-site'])
      expectProblem(
        await call(http, 'POST', '/logins', { 'sec-fetch-site': site }, { key: KEY }),
        403,
        'origin_refused',
      )
  })

  test('does not let a key in the header be anything but the key', async () => {
    await using http = await setHttp()
    const { both } = await logIn(http)
    expectProblem(
      await http.call('GET', '/me', undefined, { ...both, authorization: 'Bearer wrong' }),
      401,
      'unauthorized',
    )
  })

  test('opens streams with a ticket', async () => {
    await using http = await setHttp()
    const url = await http.listen()
    const id = await http.create()
    const { both } = await logIn(http, { key: KEY, scopes: ['read'] })
    const headers = { ...both, ...FROM_OWN_PAGE }
    const { status, body } = await call(http, 'POST', '/stream-tickets', headers, { conversation_id: id })
    expect(status).toBe(201)
    const socket = await connectAs(url, `/conversations/${id}/ws?ticket=${body.ticket}`, {})
    await socket.until(({ type }) => type === 'ready')
    const login = (await http.call('GET', '/logins')).body.items[0]
    await http.call('DELETE', `/logins/${login.id}`)
    expect(await socket.closed).toBe(4401)
  })
})

describe('its cookie', () => {
  test('is HttpOnly and SameSite=Strict, and Secure with https behind a trusted proxy', async () => {
    await using http = await setHttp({ http: { trustProxy: ['127.0.0.1'] } })
    const plain = await call(http, 'POST', '/logins', FROM_OWN_PAGE, { key: KEY })
    expect(plain.headers['set-cookie']).toMatch(
      /^agent-server-login-[0-9a-f]{12}=asw_[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
    )
    const https = {
      ...FROM_OWN_PAGE,
      'x-forwarded-for': '192.0.2.1',
      'x-forwarded-proto': 'https',
      host: 'example.org',
    }
    const secure = await call(http, 'POST', '/logins', https, { key: KEY })
    expect(secure.headers['set-cookie']).toMatch(/^__Host-agent-server-login-.*; HttpOnly; SameSite=Strict; Secure$/)
    const { both } = halvesOf(secure)
    expect((await call(http, 'GET', '/me', { ...both, ...https })).status).toBe(200)
    expectProblem(await call(http, 'GET', '/me', both), 401, 'unauthorized')
  })

  test.each([
    ['another address', {}, { remoteAddress: '192.0.2.1' }],
    ['a proxy that only says so', { via: '1.1 proxy' }, {}],
    ['a proxy with the standard header', { forwarded: 'for=192.0.2.1' }, {}],
    ['a proxy that names the address', { 'x-real-ip': '192.0.2.1' }, {}],
    ['another name of this machine', { host: 'rebound.example.org' }, {}],
    ['a proxy that is not trusted', { 'x-forwarded-for': '192.0.2.1' }, {}],
    [
      'a proxy that is not trusted and claims https',
      { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' },
      {},
    ],
  ])('is not set over plain http through %s', async (_, headers: Headers, from) => {
    await using http = await setHttp()
    const { statusCode, body } = await http.app.inject({
      method: 'POST',
      url: '/logins',
      headers: { host: 'localhost', ...headers },
      payload: { key: KEY },
      ...from,
    })
    expect([statusCode, JSON.parse(body)]).toEqual([403, expect.objectContaining({ error: 'insecure_login' })])
  })

  test('is set over plain http from anywhere if the operator permits it', async () => {
    await using http = await setHttp({ insecureLogin: true })
    expect((await call(http, 'POST', '/logins', { host: 'example.org' }, { key: KEY })).status).toBe(201)
  })
})

describe('a login with fewer scopes', () => {
  test('may do no more, and not get more by a code or another login', async () => {
    await using http = await setHttp()
    const all = await logIn(http)
    const { both, id } = await logIn(http, { key: KEY, scopes: ['read'] })
    const headers = { ...both, ...FROM_OWN_PAGE }
    expect((await call(http, 'GET', '/me', both)).body.scopes).toEqual(['read'])
    expectProblem(await call(http, 'POST', '/conversations', headers, {}), 403, 'forbidden')
    expectProblem(await call(http, 'POST', '/keys', headers, { name: 'more', scopes: ['admin'] }), 403, 'forbidden')
    expectProblem(await call(http, 'POST', '/login-codes', headers), 403, 'forbidden')
    expect((await call(http, 'GET', '/logins', both)).body.items.map((login: { id: string }) => login.id)).toEqual([id])
    expectProblem(await call(http, 'DELETE', `/logins/${all.id}`, headers), 404, 'login_not_found')
  })

  test('cannot ask for scopes that its key lacks', async () => {
    await using http = await setHttp()
    const { key } = await makeKey(http, { scopes: ['read'] })
    const answer = await call(http, 'POST', '/logins', FROM_OWN_PAGE, { key, scopes: ['read', 'admin'] })
    expectProblem(answer, 403, 'forbidden')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  test('keeps the limits of its key', async () => {
    await using http = await setHttp()
    const foreign = await http.create({ user_id: 'user-18' })
    const { key } = await makeKey(http, { user_id: 'user-17' })
    const { both } = await logIn(http, { key })
    expect((await call(http, 'GET', '/me', both)).body).toMatchObject({ kind: 'api_key', user_id: 'user-17' })
    expectProblem(await call(http, 'GET', `/conversations/${foreign}`, both), 404, 'conversation_not_found')
  })
})

describe('it ends', () => {
  test('on request, with what the browser has cached and not with what other servers of the host have stored', async () => {
    await using http = await setHttp()
    const { id, both, cookie } = await logIn(http)
    const ended = await call(http, 'DELETE', `/logins/${id}`, { ...both, ...FROM_OWN_PAGE })
    expect(ended.status).toBe(204)
    expect(ended.headers['clear-site-data']).toBe('"cache"')
    expect(ended.headers['set-cookie']).toMatch(`${cookie.split('=')[0]}=; Path=/; Max-Age=0`)
    expectProblem(await call(http, 'GET', '/me', both), 401, 'unauthorized')
    expectProblem(await http.call('DELETE', `/logins/${id}`), 404, 'login_not_found')
  })

  test('with its key, also when the key is rotated without an overlap', async () => {
    await using http = await setHttp()
    const [revoked, rotated] = [await makeKey(http, {}), await makeKey(http, {})]
    const logins = [await logIn(http, { key: revoked.key }), await logIn(http, { key: rotated.key })]
    for (const { both } of logins) expect((await call(http, 'GET', '/me', both)).status).toBe(200)
    await http.call('DELETE', `/keys/${revoked.id}`)
    await http.call('POST', `/keys/${rotated.id}/rotate`, { overlap_seconds: 0 })
    for (const { both } of logins) expectProblem(await call(http, 'GET', '/me', both), 401, 'unauthorized')
    expect((await http.call('GET', '/logins')).body.items).toEqual([])
  })

  test('for another key only if that one is an administrator, or the same', async () => {
    await using http = await setHttp()
    const [mine, theirs] = [await makeKey(http, {}), await makeKey(http, {})]
    const [own, foreign] = [await logIn(http, { key: mine.key }), await logIn(http, { key: theirs.key })]
    const asMe = { authorization: `Bearer ${mine.key}` }
    const { items } = (await http.call('GET', '/logins', undefined, asMe)).body
    expect(items).toEqual([expect.objectContaining({ id: own.id, name: 'a key', is_current: false })])
    expectProblem(await http.call('DELETE', `/logins/${foreign.id}`, undefined, asMe), 404, 'login_not_found')
    expect((await http.call('DELETE', `/logins/${own.id}`, undefined, asMe)).status).toBe(204)
    expect((await http.call('DELETE', `/logins/${foreign.id}`)).status).toBe(204)
  })
})

describe('a one-time code', () => {
  test('logs in once, with the permissions of the key that asked for it', async () => {
    await using http = await setHttp()
    const { key } = await makeKey(http, { user_id: 'user-17' })
    const { body } = await http.call('POST', '/login-codes', undefined, { authorization: `Bearer ${key}` })
    const { both } = await logIn(http, { code: body.code })
    expect((await call(http, 'GET', '/me', both)).body).toMatchObject({ kind: 'api_key', user_id: 'user-17' })
    expectProblem(await call(http, 'POST', '/logins', FROM_OWN_PAGE, { code: body.code }), 401, 'unauthorized')
  })

  test('cannot be used as a key, and a key cannot be used as a code', async () => {
    await using http = await setHttp()
    const { body } = await http.call('POST', '/login-codes')
    for (const authorization of [`Bearer ${body.code}`, `Code ${body.code}`])
      expectProblem(await http.call('GET', '/me', undefined, { authorization }), 401, 'unauthorized')
    expectProblem(await call(http, 'POST', '/logins', NO_KEY, { code: KEY }), 401, 'unauthorized')
    expectProblem(await call(http, 'POST', '/logins', NO_KEY, { key: body.code }), 401, 'unauthorized')
  })

  test('of a revoked key is refused', async () => {
    await using http = await setHttp()
    const { id, key } = await makeKey(http, {})
    const { body } = await http.call('POST', '/login-codes', undefined, { authorization: `Bearer ${key}` })
    await http.call('DELETE', `/keys/${id}`)
    expectProblem(await call(http, 'POST', '/logins', FROM_OWN_PAGE, { code: body.code }), 401, 'unauthorized')
  })
})

test.each([
  ['keys', { key: 'a wrong key' }],
  ['codes', { code: 'a wrong code' }],
])('wrong %s count as refused keys, and a right one still logs in', async (_, body) => {
  await using http = await setHttp()
  const statuses = []
  for (let i = 0; i < 21; i++) statuses.push((await call(http, 'POST', '/logins', NO_KEY, body)).status)
  expect([new Set(statuses.slice(0, 20)), statuses[20]]).toEqual([new Set([401]), 429])
  await logIn(http, { key: OLD_KEY })
})

test('wrong halves count as refused keys', async () => {
  await using http = await setHttp()
  const statuses = []
  for (let i = 0; i < 21; i++) statuses.push((await call(http, 'GET', '/me', { 'x-login': 'wrong' })).status)
  expect(statuses.at(-1)).toBe(429)
})

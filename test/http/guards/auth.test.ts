import { expect, test } from 'vitest'
import { createAuthenticator } from '../../../src/http/guards/auth.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { KEY, OLD_KEY, expectProblem, setHttp } from '../fixtures.ts'

const id = uuid7()

const ROUTES = [
  ['GET', '/info'],
  ['POST', '/conversations'],
  ['GET', '/conversations'],
  ['GET', '/conversations/count'],
  ['GET', `/conversations/${id}`],
  ['PUT', `/conversations/${id}/config`],
  ['DELETE', `/conversations/${id}`],
  ['POST', `/conversations/${id}/messages`],
  ['POST', `/conversations/${id}/run`],
  ['POST', `/conversations/${id}/pause`],
  ['GET', `/conversations/${id}/events`],
  ['GET', `/conversations/${id}/events/count`],
  ['GET', `/conversations/${id}/events/${id}`],
  ['GET', `/conversations/${id}/events/stream`],
  // Whoever has no key learns nothing of which routes and methods there are.
  ['GET', '/no/such/route'],
  ['PATCH', `/conversations/${id}`],
  ['GET', '/conversations/not-an-id'],
  ['OPTIONS', '/conversations'],
  ['POST', '/alive'],
] as const

test.each(ROUTES)('%s %s needs a key, before anything else is looked at', async (method, url) => {
  await using http = await setHttp()
  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    `Basic ${KEY}`,
    KEY,
    `Bearer ${KEY.slice(0, -1)}`,
    `Bearer ${KEY}x`,
    `Bearer ${KEY.toUpperCase()}`,
    `Bearer ${KEY} ${KEY}`,
    `Bearer ${KEY},${OLD_KEY}`,
  ]) {
    const answer = await http.call(method, url, method === 'GET' ? undefined : 'not even JSON', { authorization })
    expectProblem(answer, 401, 'unauthorized')
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    expect(answer.text).not.toContain(KEY.slice(0, 10))
  }
})

test('a refusal tells a missing header from one of another form', async () => {
  await using http = await setHttp()
  const refusal = async (headers: Record<string, string>) =>
    (await http.call('GET', '/info', undefined, { authorization: '', ...headers })).body.message
  for (const authorization of [KEY, `Basic ${KEY}`, `Token ${KEY}`])
    expect(await refusal({ authorization })).toMatch(/not of the form Bearer KEY/)
  expect(await refusal({ 'x-api-key': KEY })).toMatch(/header Authorization: Bearer KEY/)
})

test('every route that is not public is in the list above', async () => {
  await using http = await setHttp()
  const routes = http.app.printRoutes({ commonPrefix: false, includeHooks: false })
  expect(routes.match(/\((?:[A-Z]+(?:, )?)+\)/g)?.length).toBeGreaterThanOrEqual(11)
})

test.each(['/alive', '/ready'])('%s answers without a key', async (url) => {
  await using http = await setHttp()
  expect(await http.call('GET', url, undefined, { authorization: '' })).toMatchObject({
    status: 200,
    body: { status: 'ok' },
  })
})

test('a key in the URL is refused by the parameter’s name, even with a valid one in the header, and never logged', async () => {
  await using http = await setHttp()
  const names = [
    'access_token',
    'token',
    'api_key',
    'key',
    'API_KEY',
    'to%6ben',
    'jwt',
    'secret',
    'client_secret',
  ].concat(['password', 'id_token', 'refresh-token', 'X-Api-Key', 'signature', 'session_token', 'credentials'])
  for (const name of names) {
    for (const headers of [{ authorization: '' }, {}]) {
      const answer = await http.call('GET', `/info?x=1&${name}=hunter2`, undefined, headers)
      expectProblem(answer, 400, 'token_in_url')
      expect(answer.text).not.toContain('hunter2')
    }
    expectProblem(await http.call('GET', `/alive?${name}=hunter2`), 400, 'token_in_url')
  }
  expect(http.bench.logged.join('')).not.toContain('hunter2')
})

test.each(['Bearer', 'bearer', 'BEARER'])('the scheme may be written %s', async (scheme) => {
  await using http = await setHttp()
  for (const gap of [' ', '  '])
    expect((await http.call('GET', '/info', undefined, { authorization: `${scheme}${gap}${KEY}` })).status).toBe(200)
})

test('while keys change, each of them is accepted', async () => {
  await using http = await setHttp()
  expect((await http.call('GET', '/info', undefined, { authorization: `Bearer ${OLD_KEY}` })).status).toBe(200)
})

test('keys of any length can be compared', async () => {
  const authenticate = createAuthenticator(['k'.repeat(16), 'l'.repeat(5000)])
  await expect(authenticate(`Bearer ${'l'.repeat(5000)}`, {})).resolves.toBeDefined()
  for (const refused of [`Bearer ${'l'.repeat(4999)}`, undefined])
    await expect(authenticate(refused, {})).rejects.toMatchObject({ code: 'unauthorized' })
})

test('the server’s log has a line for each request, and in none of them a key', async () => {
  await using http = await setHttp()
  await http.call('GET', '/info')
  await http.call('GET', `/info?token=${KEY}`)
  await http.call('GET', `/nowhere/${KEY}`)
  await http.call('GET', '/info', undefined, { authorization: `Bearer ${KEY}-wrong` })
  await http.call('POST', '/conversations', { secret_in_the_wrong_place: KEY })
  const lines = http.bench.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'request' || msg === 'audit')
  expect(lines.map(({ msg, method, route, status }) => [msg, method, route, status])).toEqual([
    ['request', 'GET', '/info', 200],
    ['request', 'GET', '/info', 400],
    ['request', 'GET', undefined, 404],
    ['audit', 'GET', '/info', 401],
    ['audit', 'POST', '/conversations', 400],
  ])
  expect(http.bench.logged.join('')).not.toContain(KEY)
})

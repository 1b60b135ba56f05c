import { expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { MAX_FAILED_KEYS } from '../../../src/http/guards/failed-keys.ts'
import { createKeyCheck } from '../../../src/http/guards/require-key.ts'
import { expectProblem, setHttp } from '../fixtures.ts'
import type { HttpBench } from '../fixtures.ts'

const guess = (http: HttpBench, address = '203.0.113.9') =>
  http.call('GET', '/info', undefined, { authorization: 'Bearer a-wrong-key', 'x-forwarded-for': address })

const http = { trustProxy: ['127.0.0.1'] }

async function failTooOften(bench: HttpBench): Promise<void> {
  for (let i = 0; i < MAX_FAILED_KEYS; i++) expectProblem(await guess(bench), 401, 'unauthorized')
}

test('requests without a right key are refused once there were too many from their address, until some time has passed', async () => {
  await using bench = await setHttp({ http })
  await failTooOften(bench)
  const answer = await guess(bench)
  expectProblem(answer, 429, 'too_many_attempts')
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(60)
  expect(answer.headers['connection']).toBe('close')
  expectProblem(
    await bench.call('GET', '/info', undefined, { authorization: '', 'x-forwarded-for': '203.0.113.9' }),
    429,
    'too_many_attempts',
  )
})

test('other addresses are not, but one IPv6 network counts as one address', async () => {
  await using bench = await setHttp({ http })
  await failTooOften(bench)
  expectProblem(await guess(bench, '203.0.113.10'), 401, 'unauthorized')
  for (let i = 0; i < MAX_FAILED_KEYS; i++) await guess(bench, `2001:db8:1:2::${i.toString(16)}`)
  expectProblem(await guess(bench, '2001:db8:1:2:3:4:5:6'), 429, 'too_many_attempts')
  expectProblem(await guess(bench, '2001:db8:1:3::1'), 401, 'unauthorized')
})

test('a right key is accepted behind the same address, and never counted', async () => {
  await using bench = await setHttp({ http })
  await failTooOften(bench)
  await guess(bench)
  for (let i = 0; i <= MAX_FAILED_KEYS; i++)
    expect((await bench.call('GET', '/info', undefined, { 'x-forwarded-for': '203.0.113.9' })).status).toBe(200)
})

test('public routes are answered nevertheless', async () => {
  await using bench = await setHttp({ http })
  await failTooOften(bench)
  await guess(bench)
  const answer = await bench.call('GET', '/alive', undefined, { authorization: '', 'x-forwarded-for': '203.0.113.9' })
  expect(answer.status).toBe(200)
})

test('a database that does not answer counts as no refused key', async () => {
  const outage = new Problem('storage_unavailable', 'The database does not answer.')
  const fails = () => Promise.reject(outage)
  const check = createKeyCheck({
    authenticate: fails,
    tickets: { redeem: fails, issue: fails },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no request has a login
    logins: {} as Parameters<typeof createKeyCheck>[0]['logins'],
    refuseKey: () => expect.unreachable(),
  })
  const requestWith = (ticket?: string) =>
    ({
      headers: {},
      raw: {},
      params: {},
      query: { ticket },
      routeOptions: { config: { takesTicket: 'stream' } },
    }) as never
  await expect(check(requestWith(), 'Bearer ask_x')).rejects.toBe(outage)
  await expect(check(requestWith('ast_x'), undefined)).rejects.toBe(outage)
})

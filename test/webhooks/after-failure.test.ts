/** What follows from a failed attempt. */
import { describe, expect, test } from 'vitest'
import type { Failing, Failure } from '../../src/webhooks/after-failure.ts'
import { FAILURE_TIMING, MAX_REFUSALS, afterFailure } from '../../src/webhooks/after-failure.ts'

const AT = Date.parse('2030-01-01T00:00:00.000Z')
const HOUR_MS = 3_600_000
const fail = (before: Failing | undefined, failure: Partial<Failure> = {}, random = () => 1) =>
  afterFailure(before, { at: AT, sinceLastMs: undefined, ...failure }, FAILURE_TIMING, random)

/** The waits after so many failures in a row. */
function waits(count: number, failure: Partial<Failure>, random?: () => number): number[] {
  let failing: Failing | undefined
  return Array.from({ length: count }, () => {
    const verdict = fail(failing, failure, random)
    failing = verdict.failing
    return verdict.next === 'wait' ? verdict.ms : NaN
  })
}

test('waits begin with a second, double, and end at five minutes', () => {
  const all = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000)
  expect(waits(11, { status: 500 })).toEqual(all)
  expect(waits(3, {})).toEqual(all.slice(0, 3))
})

test('up to half of each is left to chance', () => {
  expect(waits(3, { status: 500 }, () => 0)).toEqual([500, 1000, 2000])
})

test('the receiver’s Retry-After is respected, between a second and an hour', () => {
  expect(waits(2, { status: 429, retryAfterMs: 20_000 })).toEqual([20_000, 20_000])
  expect(waits(1, { status: 503, retryAfterMs: 0 })).toEqual([1000])
  expect(waits(1, { status: 503, retryAfterMs: 100 * HOUR_MS })).toEqual([HOUR_MS])
})

test('410 disables immediately', () => {
  expect(fail(undefined, { status: 410 })).toMatchObject({ next: 'disable', reason: expect.stringContaining('410') })
})

describe('only failures for 24 hours', () => {
  const failing = { since: '2029-12-01T00:00:00.000Z', for_ms: 23.9 * HOUR_MS, attempts: 300, refusals: 0 }

  test('disable, of any kind', () => {
    for (const status of [500, 429, 301, 400, undefined]) {
      const failure = { sinceLastMs: 0.2 * HOUR_MS, ...(status !== undefined && { status }) }
      expect(fail(failing, failure)).toMatchObject({ next: 'disable', reason: expect.stringContaining('24 hours') })
    }
  })

  test('do not count while the server was down', () => {
    expect(fail(failing, { sinceLastMs: undefined, status: 500 })).toMatchObject({ next: 'wait', ms: 300_000 })
  })

  test('do not count while the whole process was stopped', () => {
    const early = { ...failing, for_ms: 0 }
    expect(fail(early, { sinceLastMs: 100 * HOUR_MS, status: 500 })).toMatchObject({ next: 'wait', ms: 300_000 })
  })
})

describe('a refusal of the event', () => {
  test.each([400, 413, 415, 422])('with %i, eight times, skips it, and the next one does not wait', (status) => {
    let failing: Failing | undefined
    for (let n = 1; n < MAX_REFUSALS; n++) {
      const verdict = fail(failing, { status })
      expect(verdict.next).toBe('wait')
      failing = verdict.failing
    }
    const verdict = fail(failing, { status })
    expect(verdict).toMatchObject({ next: 'skip', failing: { since: new Date(AT).toISOString(), refusals: 0 } })
    expect(fail(verdict.failing, { status })).toMatchObject({ next: 'wait', ms: 1000 })
  })

  test.each([401, 403, 404, 408, 429, 500, 503, 301])('is not %i: an outage skips no event', (status) => {
    expect(waits(100, { status })).not.toContain(NaN)
  })
})

import { expect, test } from 'vitest'
import { backoffMs, retryAfterMs } from '../../src/lib/backoff.ts'

const waits = (backoff: Parameters<typeof backoffMs>[1], random?: () => number) =>
  [1, 2, 3, 4, 5000].map((failures) => backoffMs(failures, backoff, random))

test('a wait doubles with each failure, up to the longest', () => {
  expect(waits({ firstMs: 100, longestMs: 600 })).toEqual([100, 200, 400, 600, 600])
})

test('jitter varies half of the wait', () => {
  const backoff = { firstMs: 100, longestMs: 600, jitterFrom: 0.5 }
  expect(waits(backoff, () => 0)).toEqual([50, 100, 200, 300, 300])
  expect(waits(backoff, () => 0.5)).toEqual([75, 150, 300, 450, 450])
  expect(waits({ ...backoff, jitterFrom: 0.75 }, () => 0.5)).toEqual([100, 200, 400, 600, 600])
})

const NOW = Date.parse('Sun, 06 Nov 1994 08:49:37 GMT')

test.each([
  ['0', 0],
  [' 120 ', 120_000],
  ['1.5', 1500],
  ['Sun, 06 Nov 1994 08:50:07 GMT', 30_000],
  ['Sun, 06 Nov 1994 08:00:00 GMT', 0],
  ['soon', undefined],
  ['', undefined],
])('%j is %s', (value, ms) => expect(retryAfterMs(value, NOW)).toBe(ms))

import { expect, test } from 'vitest'
import { retryAfterMs } from '../../src/lib/retry-after.ts'

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

/** The time of the server, and its days, as the page knows them. */
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { bucketEdges } from '../../src/conversations/usage/usage-buckets.ts'
import { GetUsage } from '../../src/contract/usage.ts'
import { serverNow, startsOf, timedFetch } from '../../src/ui/state/server-time.ts'

const HOUR_MS = 3_600_000
const NOW = Date.parse('2026-05-05T12:00:00Z')

/** What happens to the clock of the browser between an answer and its arrival, milliseconds. */
let passesMs = 0
let server: Server
beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/undated') response.sendDate = false
    else response.setHeader('date', new Date(NOW).toUTCString())
    vi.setSystemTime(Date.now() + passesMs)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => server.close())
afterEach(() => void vi.useRealTimers())

/** How far the page is from the server after a response, in hours. */
async function offsetAfter(clock: number, path = '/'): Promise<number> {
  vi.setSystemTime(clock)
  await timedFetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)
  return Math.round((serverNow() - Date.now()) / HOUR_MS)
}

test('a response that arrives when the computer has slept says nothing wrong about the time', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  expect(await offsetAfter(NOW)).toBe(0)
  passesMs = 8 * HOUR_MS
  expect(await offsetAfter(NOW)).toBe(0)
  passesMs = 0
  expect(await offsetAfter(NOW + 24 * HOUR_MS)).toBe(-24)
  passesMs = 8 * HOUR_MS
  expect(await offsetAfter(NOW + 24 * HOUR_MS)).toBe(-24)
  passesMs = 0
  expect(await offsetAfter(NOW + 24 * HOUR_MS, '/undated')).toBe(-24)
  expect(await offsetAfter(NOW)).toBe(0)
})

test.each(['Africa/Cairo', 'America/Havana', 'Europe/Berlin', 'Asia/Kathmandu'])(
  'the days of a chart begin when those of the server do, also where clocks change at midnight: %s',
  (tz) => {
    const before = process.env['TZ']
    process.env['TZ'] = tz
    try {
      for (const [from, to] of [
        ['2026-03-01', '2026-06-01'],
        ['2026-10-01', '2026-12-01'],
      ]) {
        const edges = bucketEdges(GetUsage.parse({ tz, from, to, bucket: 'day' }), NOW)
        const times = edges.map((ms) => new Date(ms).toISOString())
        expect(startsOf({ from: times[0]!, to: times.at(-1)! }, false)).toEqual(times.slice(0, -1))
      }
    } finally {
      if (before === undefined) delete process.env['TZ']
      else process.env['TZ'] = before
    }
  },
)

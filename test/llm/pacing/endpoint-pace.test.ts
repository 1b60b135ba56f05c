/** The pace of one endpoint, with a clock of its own. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { endpointOf } from '../../../src/llm/endpoint.ts'
import { EndpointPace } from '../../../src/llm/pacing/endpoint-pace.ts'
import { allowanceOf } from '../../../src/llm/pacing/limit-headers.ts'
import { Paces } from '../../../src/llm/pacing/paces.ts'

const NEVER = new AbortController().signal
const NO_LIMITS = new Headers()

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

/** Starts this many attempts; the times at which they begin are added to the list. */
function startMany(pace: EndpointPace, count: number, onStart: () => void = () => {}): number[] {
  const begun: number[] = []
  const start = async () => {
    await pace.start(NEVER)
    begun.push(performance.now())
    onStart()
  }
  for (let at = 0; at < count; at++) void start()
  return begun
}

test('without a limit every attempt starts at once, without a promise', () => {
  const pace = new EndpointPace()
  for (let at = 0; at < 100; at++) expect(pace.start(NEVER)).toBeUndefined()
})

test('after a limit all wait, and then start one after the other, faster with each success', async () => {
  const pace = new EndpointPace()
  pace.limited(10_000, undefined)
  const from = performance.now()
  const begun = startMany(pace, 50, () => pace.accepted(NO_LIMITS))
  await vi.advanceTimersByTimeAsync(9999)
  expect(begun).toEqual([])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(begun).toHaveLength(50)
  const waits = begun.map((time) => time - from)
  expect(waits[0]).toBeGreaterThanOrEqual(10_000)
  expect(waits[1]! - waits[0]!).toBeGreaterThan(200)
  expect(waits.filter((ms) => ms < 11_000).length).toBeLessThan(15)
})

test('a limit during the pace stops all who wait again, and halves the rate once', async () => {
  const pace = new EndpointPace()
  pace.limited(1000, undefined)
  const begun = startMany(pace, 10)
  await vi.advanceTimersByTimeAsync(1600)
  const before = begun.length
  expect(before).toBeGreaterThan(0)
  for (let at = 0; at < before; at++) pace.limited(5000, undefined)
  await vi.advanceTimersByTimeAsync(4900)
  expect(begun).toHaveLength(before)
  await vi.advanceTimersByTimeAsync(3000)
  expect(begun.length).toBeGreaterThan(before + 1)
})

test('a conversation that is alone has no pace: its own backoff is longer', () => {
  const pace = new EndpointPace()
  for (let at = 0; at < 5; at++) {
    pace.limited(0, undefined)
    vi.advanceTimersByTime(1)
    expect(pace.start(NEVER)).toBeUndefined()
    pace.end()
  }
})

test('who is aborted leaves, and the next one starts in its place', async () => {
  const pace = new EndpointPace()
  pace.limited(1000, undefined)
  const abort = new AbortController()
  const stopped = new Error('stopped')
  const first = pace.start(abort.signal)
  const begun = startMany(pace, 1)
  abort.abort(stopped)
  await expect(first).rejects.toBe(stopped)
  await vi.advanceTimersByTimeAsync(1001)
  expect(begun).toHaveLength(1)
})

test('no wait is longer than a minute, whatever the endpoint asks for', async () => {
  const pace = new EndpointPace()
  pace.limited(86_400_000, undefined)
  pace.accepted(new Headers({ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '900h0m0s' }))
  const begun = startMany(pace, 1)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(begun).toHaveLength(1)
})

describe('the limits in headers', () => {
  test('only as many requests start as the provider allows until the reset', async () => {
    const pace = new EndpointPace()
    pace.accepted(new Headers({ 'x-ratelimit-remaining-requests': '3', 'x-ratelimit-reset-requests': '20s' }))
    const begun = startMany(pace, 5)
    await vi.advanceTimersByTimeAsync(19_000)
    expect(begun).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(1100)
    expect(begun).toHaveLength(5)
  })

  test.each([
    [
      { 'x-ratelimit-remaining-requests': '7', 'x-ratelimit-reset-requests': '1m30.5s' },
      { left: 7, resetMs: 90_500 },
    ],
    [
      { 'x-ratelimit-remaining-requests': '7', 'x-ratelimit-reset-requests': '120ms' },
      { left: 7, resetMs: 120 },
    ],
    [{ 'x-ratelimit-remaining-tokens': '9000', 'x-ratelimit-reset-tokens': '1s' }, undefined],
    [
      {
        'x-ratelimit-remaining-requests': '7',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      { left: 0, resetMs: 360_000 },
    ],
    [
      {
        'anthropic-ratelimit-requests-remaining': '0',
        'anthropic-ratelimit-requests-reset': '2026-01-31T12:00:05Z',
      },
      { left: 0, resetMs: 5000 },
    ],
    [{ 'x-ratelimit-remaining-requests': '-1', 'x-ratelimit-reset-requests': '1s' }, undefined],
    [{ 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-reset-requests': 'soon' }, undefined],
    [{ 'x-ratelimit-remaining-requests': '1' }, undefined],
  ])('%j', (headers, allowance) => {
    const sent = new Headers(Object.entries(headers))
    expect(allowanceOf(sent, Date.parse('2026-01-31T12:00:00Z'))).toEqual(allowance)
  })
})

test('a pace is shared by the same endpoint, model and key, and by no others', () => {
  const paces = new Paces()
  const of = (more: object) =>
    paces.of(endpointOf({ model: 'm', base_url: 'https://a.example/v1', api_key: 'k', ...more }))
  expect(of({})).toBe(of({}))
  for (const other of [{ model: 'n' }, { api_key: 'l' }, { base_url: 'https://b.example/v1' }])
    expect(of(other)).not.toBe(of({}))
})

/** The pace of one endpoint, with a clock of its own. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { endpointOf } from '../../../src/llm/endpoints/endpoint.ts'
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
      { requestsLeft: 7, resetMs: 90_500 },
    ],
    [
      { 'x-ratelimit-remaining-requests': '7', 'x-ratelimit-reset-requests': '120ms' },
      { requestsLeft: 7, resetMs: 120 },
    ],
    [{ 'x-ratelimit-remaining-tokens': '9000', 'x-ratelimit-reset-tokens': '1s' }, undefined],
    [
      {
        'x-ratelimit-remaining-requests': '7',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      { requestsLeft: 0, resetMs: 360_000 },
    ],
    [
      {
        'anthropic-ratelimit-requests-remaining': '0',
        'anthropic-ratelimit-requests-reset': '2026-01-31T12:00:05Z',
      },
      { requestsLeft: 0, resetMs: 5000 },
    ],
    [{ 'x-ratelimit-remaining-requests': '-1', 'x-ratelimit-reset-requests': '1s' }, undefined],
    [{ 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-reset-requests': 'soon' }, undefined],
    [{ 'x-ratelimit-remaining-requests': '1' }, undefined],
  ])('%j', (headers, allowance) => {
    const sent = new Headers(Object.entries(headers))
    expect(allowanceOf(sent, Date.parse('2026-01-31T12:00:00Z'))).toEqual(allowance)
  })
})

describe('the limit of input tokens in headers', () => {
  /** When each of these requests begins, in milliseconds. */
  async function begins(headers: Record<string, string>, sizes: readonly number[]) {
    const pace = new EndpointPace()
    pace.accepted(new Headers(headers))
    const from = performance.now()
    const begun: number[] = []
    for (const [at, tokens] of sizes.entries())
      void Promise.resolve(pace.start(NEVER, tokens)).then(() => (begun[at] = performance.now() - from))
    await vi.advanceTimersByTimeAsync(100_000)
    return begun.map((ms) => Math.round(ms / 1000))
  }
  const openAi = (limit: string, left: string, reset: string) => ({
    'x-ratelimit-limit-tokens': limit,
    'x-ratelimit-remaining-tokens': left,
    'x-ratelimit-reset-tokens': reset,
  })

  test('a request waits until the provider has enough again, and the others after it', async () => {
    expect(await begins(openAi('30000', '10000', '40s'), [5000, 15_000, 5000])).toEqual([0, 20, 30])
  })

  test('requests that fit, or whose size is not known, do not wait', async () => {
    expect(await begins(openAi('30000', '10000', '40s'), [5000, 5000])).toEqual([0, 0])
    expect(await begins(openAi('30000', '10', '40s'), [0, 0])).toEqual([0, 0])
  })

  test.each([
    ['larger than the whole limit waits for all of it', openAi('30000', '10000', '40s'), 40],
    ['waits for the reset if the limit is not known', openAi('', '10000', '40s'), 40],
    ['waits a minute at most', openAi('30000', '10000', '900h0m0s'), 60],
    ['does not wait for nonsense', openAi('-5', 'many', 'later'), 0],
    ['does not wait for a negative rest', openAi('30000', '-1', '40s'), 0],
    ['does not wait after an absurd limit', openAi('1e999', '99999999999999999999', '40s'), 0],
    [
      'reads the names of Anthropic',
      {
        'anthropic-ratelimit-input-tokens-limit': '50000',
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': '2026-01-31T12:00:30Z',
      },
      30,
    ],
  ])('a request that is too large, %s', async (_, headers, seconds) => {
    vi.setSystemTime('2026-01-31T12:00:00Z')
    expect(await begins(headers, [1_000_000])).toEqual([seconds])
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

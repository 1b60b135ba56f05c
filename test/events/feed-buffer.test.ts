/** What one reader of a stream gets when it is slow, or when the stream ends: of its buffer alone. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { StoredEvent } from '../../src/events/event-store.ts'
import type { FeedBufferOptions } from '../../src/events/feed-buffer.ts'
import { FEED_LIMITS, FeedBuffer, feedLimits } from '../../src/events/feed-buffer.ts'

const event = (seq: number, type = 'UserMessage', chars = 10) =>
  ({ seq, type, json: 'x'.repeat(chars) }) as unknown as StoredEvent
/** A delta, a request or a row: none has a seq. */
const passing = (chars = 10) => ({ seq: undefined, type: 'AssistantDelta', json: 'y'.repeat(chars) }) as never

const LIMITS = { softBytes: 20, hardBytes: 40, hardRecords: 10 }
const bufferOf = (options: Partial<FeedBufferOptions> = {}) =>
  new FeedBuffer({ reachedSeq: 0, types: undefined, only: undefined, limits: LIMITS, heartbeatMs: 1000, ...options })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a stream may buffer 4 MiB or what was set, of which deltas get a sixteenth', () => {
  expect(FEED_LIMITS).toEqual({ softBytes: 262_144, hardBytes: 4_194_304, hardRecords: 10_000 })
  expect(feedLimits(1600)).toEqual({ softBytes: 100, hardBytes: 1600, hardRecords: 10_000 })
})

describe('a reader', () => {
  test('gets each event once, and those of its types, with the cursor after all of them', async () => {
    const buffer = bufferOf({ reachedSeq: 2, types: new Set(['UserMessage']) })
    buffer.addEvents([event(2), event(3), event(4, 'Result')])
    buffer.addEvents([event(3), event(4, 'Result')])
    expect(await buffer.take()).toEqual({ records: [event(3)], reachedSeq: 4 })
  })

  test('does not get what is left out for it', async () => {
    const buffer = bufferOf({ only: ({ seq }) => seq !== 1 })
    buffer.addEvents([event(1), event(2)])
    expect(await buffer.take()).toEqual({ records: [event(2)], reachedSeq: 2 })
  })

  test('that waits gets the next record at once, and else an empty batch again and again', async () => {
    const buffer = bufferOf()
    for (let beat = 0; beat < 2; beat++) {
      const waiting = buffer.take()
      await vi.advanceTimersByTimeAsync(1000)
      expect(await waiting).toEqual({ records: [], reachedSeq: 0 })
    }
    for (const add of ['addTransient', 'addDue', 'addRequest'] as const) {
      const waiting = buffer.take()
      buffer[add](passing())
      expect(await waiting).toEqual({ records: [passing()], reachedSeq: 0 })
    }
  })

  test('that waits takes a burst of any size', async () => {
    const buffer = bufferOf()
    const waiting = buffer.take()
    buffer.addTransient(passing(50))
    buffer.addTransient(passing(50))
    buffer.addRequest(passing(50))
    buffer.addEvents([event(1)])
    expect(await waiting).toMatchObject({ records: { length: 4 }, reachedSeq: 1 })
  })
})

describe('a slow reader', () => {
  test('misses deltas from the lower bound on, and nothing else', async () => {
    const buffer = bufferOf()
    buffer.addTransient(passing(19))
    buffer.addTransient(passing(1))
    buffer.addTransient(passing(7))
    buffer.addRequest(passing(9))
    buffer.addEvents([event(1)])
    expect((await buffer.take()).records.map(({ json }) => json.length)).toEqual([19, 1, 9, 10])
    buffer.addTransient(passing(7))
    expect((await buffer.take()).records).toHaveLength(1)
  })

  test('is cut off from the higher bound on, and continues after what it has taken', async () => {
    for (const add of [
      (buffer: FeedBuffer) => buffer.addEvents([event(3)]),
      (buffer: FeedBuffer) => buffer.addRequest(passing()),
    ]) {
      const buffer = bufferOf()
      buffer.addEvents([event(1)])
      await buffer.take()
      buffer.addEvents([event(2, 'UserMessage', 40)])
      add(buffer)
      expect(await buffer.take()).toEqual({ records: [], reachedSeq: 1, end: 'lagged' })
    }
    const below = bufferOf()
    below.addEvents([event(1, 'UserMessage', 39)])
    below.addEvents([event(2)])
    expect((await below.take()).records).toHaveLength(2)
  })

  test('is cut off when too many records wait, however small they are', async () => {
    const buffer = bufferOf()
    buffer.addEvents(Array.from({ length: 9 }, (_, at) => event(at + 1, '', 1)))
    buffer.addEvents([event(10, '', 1)])
    buffer.addEvents([event(11, '', 1)])
    expect(await buffer.take()).toEqual({ records: [], reachedSeq: 0, end: 'lagged' })
  })

  test('has its requests that were due before it came, beyond all bounds', async () => {
    const buffer = bufferOf()
    for (let at = 0; at < 5; at++) buffer.addDue(passing(50))
    expect((await buffer.take()).records).toHaveLength(5)
  })
})

describe('after its end a stream', () => {
  test.each(['deleted', 'closing'] as const)('that is %s has what came before, and nothing more', async (why) => {
    const buffer = bufferOf()
    buffer.addEvents([event(1)])
    buffer.end(why)
    buffer.end('lagged')
    buffer.addEvents([event(2)])
    buffer.addTransient(passing())
    buffer.addRequest(passing())
    expect(await buffer.take()).toEqual({ records: [event(1)], reachedSeq: 1, end: why })
    expect(await buffer.take()).toEqual({ records: [], reachedSeq: 1, end: why })
  })

  test('that its reader closed has nothing, and no timer', async () => {
    const buffer = bufferOf()
    const waiting = buffer.take()
    buffer.close()
    expect(await waiting).toEqual({ records: [], reachedSeq: 0, end: 'aborted' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each(['deleted', 'lagged'] as const)('that is %s wakes a reader that waits', async (why) => {
    const buffer = bufferOf()
    const waiting = buffer.take()
    buffer.end(why)
    expect(await waiting).toEqual({ records: [], reachedSeq: 0, end: why })
  })
})

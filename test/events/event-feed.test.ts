import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EventLog } from '../../src/events/event-log.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { follow } from '../../src/events/event-feed.ts'
import type { FollowOptions } from '../../src/events/event-feed.ts'
import type { FeedBatch } from '../../src/events/feed-buffer.ts'
import { WaitingHooks } from '../../src/conversations/client-hooks/waiting-hooks.ts'
import type { PublishedRecord } from '../../src/events/sse-frame.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import type { SharedLog } from './fixtures.ts'
import { answer, delta, message, seqsOf, sharedLog, tempDirectory, reportedLate, toolResult } from './fixtures.ts'
import { effort } from '../support/patience.ts'
import { takeTime } from '../support/take-time.ts'

let shared: SharedLog
let log: EventLog

beforeEach(async () => {
  shared = await sharedLog()
  log = shared.log
})
afterEach(async () => {
  await shared[Symbol.asyncDispose]()
  expect(log.subscriberCount).toBe(0)
  expect(shared.errors).toEqual([])
})

const append = (count: number) => log.append(Array.from({ length: count }, (_, i) => message(`${i}`)))
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

type Reader = { records: PublishedRecord[]; batches: FeedBatch[]; done: Promise<void>; stop: () => void }

/** Follows the log in the background. `pause` is what the reader does between batches. */
function read(options: FollowOptions = {}, pause?: () => Promise<unknown>): Reader {
  const abort = new AbortController()
  const feed = follow(log, { signal: abort.signal, ...options })
  const records: PublishedRecord[] = []
  const batches: FeedBatch[] = []
  const run = async () => {
    for await (const batch of feed) {
      batches.push(batch)
      records.push(...batch.records)
      await pause?.()
    }
  }
  return { records, batches, done: run(), stop: () => abort.abort() }
}

const [LEAST_READERS, MAX_READERS] = [10, 200]

const endOf = ({ batches }: Reader) => batches.at(-1)?.end

describe('A reader', () => {
  test('gets the backlog, then live events, each event once and in order', async () => {
    await append(1000)
    const reader = read({ afterSeq: 0 })
    await append(5)
    await expect.poll(() => reader.records.length).toBe(1005)
    await append(2)
    await expect.poll(() => reader.records.length).toBe(1007)
    reader.stop()
    await reader.done
    expect(seqsOf(reader.records)).toEqual(range(1, 1007))
    expect(endOf(reader)).toBe('aborted')
  })

  test('resumes after the last seq it has', async () => {
    await append(10)
    const reader = read({ afterSeq: 7 })
    await expect.poll(() => reader.records.length).toBe(3)
    reader.stop()
    await reader.done
    expect(seqsOf(reader.records)).toEqual([8, 9, 10])
  })

  test('with a filter that lets nothing of the backlog through gets one heartbeat per interval, and not one per page', async () => {
    await append(5)
    const none = { afterSeq: 0, types: new Set(['ToolResult']), page: { limit: 1, maxBytes: 1000 } }
    const quiet = read({ ...none, heartbeatMs: 1_000_000 })
    await expect.poll(() => log.subscriberCount).toBe(1)
    quiet.stop()
    await quiet.done
    expect(quiet.batches).toEqual([{ records: [], reachedSeq: 5, end: 'aborted' }])
    const restless = read({ ...none, heartbeatMs: 0 })
    await expect.poll(() => restless.batches.length).toBeGreaterThan(0)
    restless.stop()
    await restless.done
    expect(restless.batches[0]?.reachedSeq).toBeLessThan(5)
  })

  test('without a cursor starts at the moment of the call, however late reading begins', async () => {
    await append(3)
    const feed = follow(log)
    await append(2)
    const first = await feed.next()
    expect(first.value && seqsOf(first.value.records)).toEqual([4, 5])
    await feed.return()
  })

  test('has subscribed before the backlog ends', async () => {
    await append(1)
    const [behind, atHead] = [follow(log, { afterSeq: 0 }), follow(log)]
    const waiting = atHead.next()
    expect(log.subscriberCount).toBe(1)
    await behind.next()
    expect(log.subscriberCount).toBe(1)
    const alsoWaiting = behind.next()
    // In the same turn, or an event stored in between would be missed.
    expect(log.subscriberCount).toBe(2)
    await append(1)
    expect([(await waiting).value?.reachedSeq, (await alsoWaiting).value?.reachedSeq]).toEqual([2, 2])
    await Promise.all([behind.return(), atHead.return()])
  })

  test('a reader ahead of the subscribers does not get events twice', async () => {
    await using directory = await tempDirectory()
    const stored = await createJsonlStore({ directory: directory.path }).create(uuid7())
    const late = new EventLog({ log: reportedLate(stored, () => 100), onListenerError: () => undefined })
    const appended = late.append([message('a'), message('b')])
    await expect.poll(() => late.head, { interval: 1 }).toBe(2)
    const feed = follow(late, { afterSeq: 0 })
    expect((await feed.next()).value?.records).toHaveLength(2)
    const next = feed.next()
    await appended
    await late.append([message('c')])
    expect(seqsOf((await next).value?.records ?? [])).toEqual([3])
    await feed.return()
    await late.close('closing')
  })

  test('a cursor ahead of the log is refused immediately', async () => {
    await append(3)
    expect(() => follow(log, { afterSeq: 4 })).toThrow(
      expect.objectContaining({ code: 'cursor_ahead', details: { after_seq: 4, head: 3 } }),
    )
  })

  test('joins anywhere during heavy appends without gap or duplicate', async () => {
    await append(2000)
    const appends = effort(80, 3000)
    const writing = { isDone: false }
    const readers: { from: number; reader: Reader }[] = []
    const writers = Array.from({ length: 3 }, async (_, n) => {
      // They write on until enough readers have joined, which a late timer delays.
      for (let i = 0; i < appends || readers.length <= LEAST_READERS; i++) {
        await append(((i * 7 + n) % 5) + 1)
        if (i % 17 === n) await takeTime(Math.random() * 3)
      }
    })
    const written = Promise.all(writers).then(() => (writing.isDone = true))
    // Each keeps all that it reads, and delays the writers: more and more would fill the memory.
    while (!writing.isDone && readers.length < MAX_READERS) {
      const from = Math.floor(Math.random() * (log.head + 1))
      const isSlow = Math.random() < 0.3
      readers.push({ from, reader: read({ afterSeq: from, deltas: true }, isSlow ? () => takeTime(2) : undefined) })
      await takeTime(Math.random() * effort(4, 40))
    }
    await written
    const { head } = log
    for (const { reader } of readers) await expect.poll(() => reader.records.at(-1)?.seq).toBe(head)
    for (const { reader } of readers) reader.stop()
    for (const { from, reader } of readers) {
      await reader.done
      expect(seqsOf(reader.records)).toEqual(range(from + 1, head))
    }
  })

  test('gets a burst in one batch, and a single event within the turn in which it was published', async () => {
    const reader = read({ deltas: true })
    await tick()
    const id = uuid7()
    log.publish(delta(id, 0, 'a'))
    for (let i = 0; i < 10; i++) await Promise.resolve()
    expect(reader.records).toHaveLength(1)
    for (let i = 1; i < 2000; i++) log.publish(delta(id, i, 'a'))
    await append(2)
    await tick()
    expect(reader.batches.map(({ records }) => records.length)).toEqual([1, 1999, 2])
    reader.stop()
    await reader.done
  })

  test('may stop at any time: by return, by a throw, by its signal, before it began', async () => {
    await append(600)
    for await (const _ of follow(log, { afterSeq: 0 })) break
    const live = follow(log)
    const parked = live.next()
    await append(1)
    await parked
    expect(log.subscriberCount).toBe(1)
    await live.return()
    expect(log.subscriberCount).toBe(0)
    const failing = async () => {
      for await (const _ of follow(log, { afterSeq: log.head - 1 })) throw new Error('reader failed')
    }
    await expect(failing()).rejects.toThrow('reader failed')
    const reader = read({ afterSeq: 0, signal: AbortSignal.abort() })
    await reader.done
    expect(reader.batches).toEqual([{ records: [], reachedSeq: 0, end: 'aborted' }])
    const waiting = read()
    await tick()
    expect(log.subscriberCount).toBe(1)
    waiting.stop()
    await waiting.done
    expect(log.subscriberCount).toBe(0)
  })

  test.each(['deleted', 'closing'] as const)('receives the end of the log after its last events: %s', async (end) => {
    await append(3)
    const readers = [read({ afterSeq: 0 }), read(), read({ afterSeq: 0 }, () => takeTime(30))]
    await tick()
    await append(2)
    await tick()
    await log.close(end)
    for (const reader of readers) await reader.done
    expect(readers.map(endOf)).toEqual([end, end, end])
    expect(seqsOf(readers[1]!.records)).toEqual([4, 5])
    const late = read({ afterSeq: 0 })
    await late.done
    expect(late.batches).toEqual([{ records: [], reachedSeq: 0, end }])
  })

  test('far behind when the log closes receives the end, and no error', async () => {
    await log.append(Array.from({ length: 40 }, () => message('x'.repeat(300_000))))
    const readers = Array.from({ length: 10 }, (_, afterSeq) => read({ afterSeq }))
    await log.close('deleted')
    for (const reader of readers) {
      await reader.done
      expect(endOf(reader)).toBe('deleted')
    }
  })
})

describe('A filter by type', () => {
  const types = new Set(['ToolResult'])

  test('applies its type filter to backlog and live events, and reports the reached position', async () => {
    await append(700)
    await log.append([toolResult('then')])
    await append(9)
    const reader = read({ afterSeq: 0, types, heartbeatMs: 20 })
    await expect.poll(() => reader.records.length).toBe(1)
    await append(2)
    await log.append([message('a'), toolResult('now'), message('b')])
    await append(1)
    await expect.poll(() => reader.batches.at(-1)?.reachedSeq).toBe(716)
    reader.stop()
    await reader.done
    expect(seqsOf(reader.records)).toEqual([701, 714])
    expect(reader.batches.map(({ reachedSeq }) => reachedSeq)).toEqual(
      reader.batches.map(({ reachedSeq }) => reachedSeq).toSorted((a, b) => a - b),
    )
    // Silent otherwise: no batch for what it doesn't want, but for signs of life.
    expect(reader.batches.filter(({ records }) => records.length > 0)).toHaveLength(2)
  })

  test('never reports a position beyond the events it has yielded', async () => {
    const reader = read({ types }, () => takeTime(1))
    for (let i = 0; i < 200; i++) {
      await log.append(i % 3 === 0 ? [toolResult(i), message('x')] : [message('y')])
      if (i % 10 === 0) await takeTime(1)
    }
    await expect.poll(() => reader.records.length).toBe(67)
    reader.stop()
    await reader.done
    let given = 0
    for (const { records, reachedSeq } of reader.batches) {
      for (const { seq } of records) {
        expect(seq).toBeGreaterThan(given)
        given = seq!
      }
      expect(reachedSeq).toBeGreaterThanOrEqual(given)
      given = reachedSeq
    }
  })
})

describe('Deltas', () => {
  test('include deltas on request, together with the text so far of a message in progress', async () => {
    await append(300)
    const id = uuid7()
    log.publish(delta(id, 0, 'Hel'))
    log.publish(delta(id, 3, 'lo'))
    const [plain, joining] = [read({ afterSeq: 298 }), read({ afterSeq: 298, deltas: true })]
    await expect.poll(() => joining.records.length).toBe(3)
    log.publish(delta(id, 5, '!'))
    await log.append([answer(id, 'Hello!')])
    const after = read({ deltas: true })
    await tick()
    for (const reader of [plain, joining, after]) reader.stop()
    await Promise.all([plain.done, joining.done, after.done])
    const textDeltas = joining.records.flatMap(({ event }) =>
      event.type === 'AssistantDelta' ? [[event.offset, event.text_delta]] : [],
    )
    expect(seqsOf(joining.records)).toEqual([299, 300, undefined, undefined, 301])
    expect(textDeltas).toEqual([
      [0, 'Hello'],
      [5, '!'],
    ])
    expect(seqsOf(plain.records)).toEqual([299, 300, 301])
    expect(after.records).toEqual([])
  })
})

describe('A slow reader', () => {
  const limits = { softBytes: 5000, hardBytes: 50_000, hardRecords: 200 }

  /** A reader that doesn't come back after its first batch until it's let go. */
  const stuck = (options: FollowOptions = {}) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    return { ...read({ limits, ...options }, () => promise), letGo: resolve }
  }

  test('loses deltas first, and no durable event', async () => {
    const slow = stuck({ deltas: true })
    const quick = read({ deltas: true, limits })
    const id = uuid7()
    await append(1)
    for (let i = 0; i < 100; i++) {
      log.publish(delta(id, i * 500, 'x'.repeat(500)))
      await Promise.resolve()
    }
    await append(20)
    slow.letGo()
    await expect.poll(() => slow.records.at(-1)?.seq).toBe(21)
    slow.stop()
    quick.stop()
    await Promise.all([slow.done, quick.done])
    expect(seqsOf(slow.records).filter((seq) => seq !== undefined)).toEqual(range(1, 21))
    expect(slow.records.length).toBeLessThan(21 + 15)
    expect(quick.records.length).toBe(21 + 100)
  })

  test.each([
    ['records', (): Promise<unknown> => append(1)],
    ['bytes', (): Promise<unknown> => log.append([message('x'.repeat(1000))])],
  ])('is cut off by too many %s, and resumes from its last seq; nobody else notices', async (_, write) => {
    const slow = stuck()
    const quick = read({ limits })
    await append(1)
    for (let i = 0; i < 300; i++) await write()
    await tick()
    expect(seqsOf(quick.records)).toEqual(range(1, 301))
    slow.letGo()
    await slow.done
    expect(endOf(slow)).toBe('lagged')
    expect(seqsOf(slow.records)).toEqual([1])
    expect(slow.batches.at(-1)!.reachedSeq).toBe(1)
    expect(log.subscriberCount).toBe(1)
    const again = read({ afterSeq: slow.batches.at(-1)!.reachedSeq })
    await expect.poll(() => again.records.length).toBe(300)
    for (const reader of [quick, again]) reader.stop()
    await Promise.all([quick.done, again.done])
    expect(seqsOf(again.records)).toEqual(range(2, 301))
  })

  test('loses no request: it is cut off, and its next connection gets those that wait', async () => {
    const waiting = new WaitingHooks(log.conversationId)
    const signal = new AbortController()
    const asked = { client: 'policy', id: 'guard', point: 'PreToolUse', timeoutMs: 1000 } as const
    const ask = () => waiting.request(asked, { text: 'x'.repeat(1000) }, signal.signal).catch(() => {})
    const requests = waiting.requestsTo('policy')
    const slow = stuck({ requests })
    const quick = read({ limits, requests })
    await append(1)
    await tick()
    const asks = []
    for (let i = 0; i < 100; i++) {
      asks.push(ask())
      await Promise.resolve()
    }
    await expect.poll(() => quick.records.length).toBe(101)
    slow.letGo()
    await slow.done
    expect(endOf(slow)).toBe('lagged')
    expect(waiting.isConnected('policy')).toBe(true)
    const again = read({ limits, requests })
    await expect.poll(() => again.records.length).toBe(100)
    for (const reader of [quick, again]) reader.stop()
    await Promise.all([quick.done, again.done])
    expect(waiting.isConnected('policy')).toBe(false)
    signal.abort()
    await Promise.all(asks)
    expect(waiting.requests()).toEqual([])
  })

  test('of the backlog is never cut off, however many events arrive meanwhile', async () => {
    await append(2000)
    const reader = read({ afterSeq: 0, limits }, () => takeTime(1))
    for (let i = 0; i < 50; i++) await append(40)
    await expect.poll(() => reader.records.length).toBe(4000)
    reader.stop()
    await reader.done
    expect(seqsOf(reader.records)).toEqual(range(1, 4000))
  })

  test('is not caused by one event larger than all limits', async () => {
    const reader = read({ limits })
    await append(1)
    await log.append([message('x'.repeat(200_000)), message('and more')])
    await tick()
    expect(reader.records).toHaveLength(3)
    reader.stop()
    await reader.done
  })
})

describe('A log that cannot be read', () => {
  /** It fails at the first read, and is closed by then if `end` says so. */
  const failing = (end: 'closing' | undefined) => {
    const source = {
      head: 5,
      ended: undefined as 'closing' | undefined,
      read: () => {
        source.ended = end
        return Promise.reject(new Error('there is no file'))
      },
      subscribe: (subscriber: { onClose: (why: unknown) => void }) => {
        subscriber.onClose(source.ended)
        return () => {}
      },
      messagesSoFar: () => [],
    }
    return source as unknown as Parameters<typeof follow>[0]
  }

  test('because it was closed ends the feed at the place that was reached', async () => {
    const batches = await Array.fromAsync(follow(failing('closing'), { afterSeq: 2, heartbeatMs: 0 }))
    expect(batches.map(({ records, reachedSeq, end }) => [records.length, reachedSeq, end])).toEqual([
      [0, 2, undefined],
      [0, 2, 'closing'],
    ])
  })

  test('for another reason fails the feed', async () => {
    const batches = Array.fromAsync(follow(failing(undefined), { afterSeq: 2 }))
    await expect(batches).rejects.toThrow('there is no file')
  })
})

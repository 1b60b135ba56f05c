/** A page of the firehose: its order says which events, and the logs of the conversations have them. */
import { expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import type { LogViews, ReadOptions, StoredEvent } from '../../../src/events/event-store.ts'
import { readBacklog } from '../../../src/events/firehose/firehose-backlog.ts'
import type { OrderedEvent } from '../../../src/events/firehose/firehose-order.ts'

const eventOf = (conversation_id: string, seq: number): StoredEvent => {
  const event = { seq, type: 'UserMessage', conversation_id }
  return { seq, type: 'UserMessage', event, json: JSON.stringify(event) } as never
}

/** `views`: what happens, by conversation, when its log is opened, each time. */
type Setting = { readonly views?: Readonly<Record<string, (() => unknown)[]>>; readonly head?: number }

/** `order`: the conversation and the seq at each position, `a1` for example; a dot for a position without an event. */
function setUp(order: string, { views = {}, head = Infinity }: Setting = {}) {
  const places: OrderedEvent[] = order.split(' ').flatMap((name, at) => {
    const place = { position: at + 1, conversationId: name.slice(0, 1), seq: Number(name.slice(1)) }
    return name === '.' ? [] : [place]
  })
  const seen = { reads: [] as ReadOptions[], faults: [] as unknown[], views: 0 }
  const store: LogViews = {
    view: async (id) => {
      seen.views++
      views[id]?.shift()?.()
      return {
        head: 100,
        read: async (options: ReadOptions) => {
          seen.reads.push(options)
          const { afterSeq = 0, beforeSeq = Infinity } = options
          const seqs = Array.from({ length: 20 }, (_, at) => at + 1).filter((seq) => seq > afterSeq && seq < beforeSeq)
          return { events: seqs.map((seq) => eventOf(id, seq)), scannedTo: undefined }
        },
        [Symbol.asyncDispose]: async () => {},
      }
    },
  }
  const read = async (after: number, limit: number) => places.filter(({ position }) => position > after).slice(0, limit)
  const backlog = {
    order: { epoch: '0123456789abcdef', last: order.length, read } as never,
    store,
    head: Math.min(head, order.split(' ').length),
    onFault: (...fault: unknown[]) => void seen.faults.push(fault),
  }
  const page = async (options: ReadOptions) => {
    const { events, scannedTo } = await readBacklog(backlog, options)
    return [
      events
        .map(({ json }) => JSON.parse(json))
        .map((each) => `${each.conversation_id}${each.seq}`)
        .join(' '),
      scannedTo,
    ]
  }
  return { page, seen }
}

const problem =
  (code: 'unavailable' | 'conversation_deleted' | 'conversation_damaged' | 'conversation_not_found') => () => {
    throw new Problem(code, 'no')
  }

test('a page has the events of its positions, up to the head, and tells where the next one begins', async () => {
  const { page } = setUp('a1 b1 a2 . b2 a3', { head: 5 })
  expect(await page({ limit: 10 })).toEqual(['a1 b1 a2 b2', undefined])
  expect(await page({ limit: 2 })).toEqual(['a1 b1', 2])
  expect(await page({ afterSeq: 2, limit: 2 })).toEqual(['a2 b2', undefined])
  expect(await page({ afterSeq: 1, beforeSeq: 4, limit: 10 })).toEqual(['b1 a2', undefined])
  expect(await page({ afterSeq: 5, limit: 10 })).toEqual(['', undefined])
})

test('an event that a restored log has again is on the next page', async () => {
  const { page } = setUp('a1 a2 b1 a2')
  expect(await page({ limit: 10 })).toEqual(['a1 a2 b1', 3])
  expect(await page({ afterSeq: 3, limit: 10 })).toEqual(['a2', undefined])
})

test('only what is between its events is read of each log, and no further logs when the page is full', async () => {
  const { page, seen } = setUp('a3 b1 a5 c1')
  await page({ limit: 10, maxBytes: 1000 })
  expect(seen.reads[0]).toEqual({ afterSeq: 2, beforeSeq: 6, limit: 3, maxBytes: 1000 })
  expect(seen.reads[1]!.maxBytes).toBeLessThan(1000)
  expect(seen.reads).toHaveLength(3)
  const small = setUp('a3 b1 a5 c1')
  expect(await small.page({ limit: 10, maxBytes: 10, types: new Set(['UserMessage']) })).toEqual(['a3', 1])
  expect(small.seen.reads).toMatchObject([{ types: new Set(['UserMessage']) }])
})

test.each(['conversation_deleted', 'conversation_not_found', 'conversation_damaged'] as const)(
  'a conversation with %s is left out, and only damage is reported',
  async (code) => {
    const { page, seen } = setUp('a1 b1', { views: { a: [problem(code)] } })
    expect(await page({ limit: 10 })).toEqual(['b1', undefined])
    expect(seen.faults).toEqual(code === 'conversation_damaged' ? [[expect.objectContaining({ code }), 'a']] : [])
  },
)

test('a log that was closed while it was read is read again, up to 20 times', async () => {
  const closed = (times: number) =>
    setUp('a1', { views: { a: Array.from({ length: times }, () => problem('unavailable')) } })
  expect(await closed(19).page({ limit: 10 })).toEqual(['a1', undefined])
  await expect(closed(20).page({ limit: 10 })).rejects.toMatchObject({ code: 'unavailable' })
})

test('another error is not hidden, and nothing is tried again', async () => {
  const fault = new TypeError('no')
  const { page, seen } = setUp('a1', {
    views: {
      a: [
        () => {
          throw fault
        },
      ],
    },
  })
  await expect(page({ limit: 10 })).rejects.toBe(fault)
  expect(seen.views).toBe(1)
})

/** What the live readers of the firehose get, and in which order. */
import { expect, test } from 'vitest'
import { FirehoseSubscribers } from '../../../src/events/firehose/firehose-subscribers.ts'

const of = (seq: number) => ({ conversationId: 'a', seq })
const stored = (seq: number) => ({ seq, type: 'UserMessage', json: `{"seq":${seq}}`, event: {} }) as never
const delta = (text: string) => ({ seq: undefined, type: 'AssistantDelta', json: text }) as never
const deleted = { seq: undefined, type: 'conversation_deleted', json: 'deleted' } as never

/** All positions have the event with the same seq, of one conversation; `page` of them are read at a time. */
function setUp(page = Infinity) {
  const subscribers = new FirehoseSubscribers()
  const seen: string[] = []
  const reads: (readonly [number, number])[] = []
  const join = (name: string) =>
    subscribers.add({
      onEvents: (events) => void seen.push(`${name}: ${events.map(({ json }) => json).join(' ')}`),
      onTransient: ({ json }) => void seen.push(`${name}: ${json}`),
      onNotice: ({ json }) => void seen.push(`${name}: notice ${json}`),
      onClose: (why) => void seen.push(`${name}: ${why}`),
    })
  const read = async (after: number, limit: number) => {
    reads.push([after, limit])
    const positions = Array.from({ length: Math.min(limit, page) }, (_, at) => after + at + 1)
    return positions.map((position) => ({ position, conversationId: 'a', seq: position }))
  }
  const show = (count: number, after: number, to: number) =>
    subscribers.show(count, {
      order: { epoch: '0123456789abcdef', read } as never,
      positions: { after, to },
      pagesOf: async function* (gap) {
        yield [{ json: `from the logs ${gap.after}-${gap.to}` } as never]
      },
    })
  const wait = (...seqs: number[]) => {
    for (const seq of seqs) subscribers.wait({ kind: 'event', stored: stored(seq), of: of(seq) })
  }
  return { subscribers, seen, reads, join, show, wait }
}

test('events that wait are published with what passed between them, and those that did not wait are read', async () => {
  const { subscribers, seen, join, show, wait } = setUp(2)
  join('one')
  wait(2, 3)
  subscribers.wait({ kind: 'passing', record: delta('d') })
  wait(6)
  subscribers.wait({ kind: 'passing', record: deleted })
  wait(7)
  expect(subscribers.waitingCount).toBe(6)
  await show(5, 0, 6)
  expect(seen).toEqual([
    'one: from the logs 0-1',
    'one: {"seq":2} {"seq":3}',
    'one: d',
    'one: from the logs 3-5',
    'one: {"seq":6}',
    'one: notice deleted',
  ])
  expect(subscribers.waitingCount).toBe(1)
})

test('places are read only as far as something waits for them', async () => {
  const { reads, show, wait, join } = setUp(3)
  join('one')
  await show(0, 0, 9)
  expect(reads).toEqual([])
  wait(2)
  await show(1, 0, 9)
  expect(reads).toEqual([[0, 9]])
  wait(5)
  await show(1, 0, 20_000)
  expect(reads.slice(1)).toEqual([
    [0, 10_000],
    [3, 10_000],
  ])
})

test('a reader gets nothing that passed before it came, and nothing after it left', async () => {
  const { subscribers, seen, join, show } = setUp()
  const leave = join('early')
  subscribers.wait({ kind: 'passing', record: delta('first') })
  join('late')
  subscribers.wait({ kind: 'passing', record: delta('second') })
  await show(2, 0, 0)
  expect(seen.splice(0)).toEqual(['early: first', 'early: second', 'late: second'])
  join('last')
  subscribers.tellNow(delta('third'))
  expect(seen.splice(0)).toEqual(['early: third', 'late: third', 'last: third'])
  leave()
  expect(subscribers.count).toBe(2)
  subscribers.tellNow(delta('fourth'))
  expect(seen.splice(0)).toEqual(['late: fourth', 'last: fourth'])
})

test('what is dropped is published to nobody, and the end is the last that a reader gets', async () => {
  const { subscribers, seen, join, wait, show } = setUp()
  join('one')
  wait(1, 2)
  subscribers.dropWaiting()
  expect(subscribers.waitingCount).toBe(0)
  join('two')
  subscribers.tellNow(delta('d'))
  subscribers.endAll('lagged')
  await show(0, 0, 1)
  expect(seen).toEqual(['one: d', 'two: d', 'one: lagged', 'two: lagged'])
  expect(subscribers.count).toBe(0)
})

/** What the firehose does with an order that fails, and with one that needs no help. */
import { setImmediate as tick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Firehose } from '../../../src/events/firehose.ts'
import type { FirehoseOrder, LogHead } from '../../../src/events/firehose/firehose-order.ts'

const owner = { id: 'a', userId: undefined }

function setUp(fields: Partial<FirehoseOrder> = {}) {
  const seen = { added: [] as LogHead[][], kept: [] as string[], faults: [] as unknown[], opened: 0, disposed: 0 }
  const order: FirehoseOrder = {
    epoch: '0123456789abcdef',
    last: 0,
    add: async (heads) => void seen.added.push([...heads]),
    sync: async () => {},
    read: async () => [],
    keepOnly: async (ids) => void seen.kept.push(...ids),
    [Symbol.asyncDispose]: async () => void seen.disposed++,
    ...fields,
  }
  const firehose = new Firehose({
    orders: { open: async () => (seen.opened++, order) },
    store: {} as never,
    heads: () => [['a', 3] as const],
    onFault: (error) => void seen.faults.push(error),
  })
  return { firehose, seen }
}

test('a reader of an order that cannot be stored gets an error, and the next one opens it again', async () => {
  const full = new Error('there is no room')
  let isFull = true
  const { firehose, seen } = setUp({
    sync: async () => {
      if (isFull) throw full
    },
  })
  await expect(firehose.open()).rejects.toMatchObject({ code: 'storage_failed' })
  expect(seen).toMatchObject({ opened: 1, disposed: 1 })
  expect(new Set(seen.faults)).toEqual(new Set([full]))
  isFull = false
  using reader = await firehose.open()
  expect([reader.head, seen.opened]).toEqual([0, 2])
})

test('a reader that comes while the server stops gets an error', async () => {
  const { firehose, seen } = setUp()
  await firehose.close()
  await expect(firehose.open()).rejects.toMatchObject({ code: 'unavailable' })
  expect(seen.opened).toBe(0)
})

test('an order is completed by what its conversations have, once, and forgets all others', async () => {
  const { firehose, seen } = setUp()
  using _first = await firehose.open()
  using _second = await firehose.open()
  expect(seen.added.flat()).toEqual([{ conversationId: 'a', head: 3, isExact: true }])
  expect([seen.kept, seen.opened]).toEqual([['a'], 1])
})

test('an order that has all appends without help is not completed, but gets what is deleted', async () => {
  const { firehose, seen } = setUp({ logs: {} as never })
  using _reader = await firehose.open()
  expect([seen.added.flat(), seen.kept]).toEqual([[], []])
  firehose.announceDeleted(owner)
  await tick()
  expect(seen.added.flat()).toEqual([{ conversationId: 'a', head: 0, isExact: true }])
  const log = { conversationId: 'b', head: 4, subscribe: () => () => {}, messagesSoFar: () => [] }
  firehose.attach(log as never)
  await tick()
  expect(seen.added.flat().at(-1)).toEqual({ conversationId: 'b', head: 4, isExact: true })
})

/** What a page of a log in a database is, and which rows it may have. The database only answers what it is told to. */
import { describe, expect, test } from 'vitest'
import { readPage } from '../../../src/storage/postgres/read-events.ts'

type Row = { readonly seq: number; readonly type: string; readonly bytes: number; readonly json: string | null }

const row = (seq: number, more: Partial<Row> = {}): Row => ({
  seq,
  type: 'ClientEvent',
  bytes: 10,
  json: JSON.stringify({ seq, type: 'ClientEvent', name: `n${seq}` }),
  ...more,
})
/** The event after the page, of which only the size is known. */
const next = (seq: number): Row => row(seq, { json: null })

/** A log of ten events, and what was asked of its database. */
function logOf(...answers: readonly (readonly Row[])[]) {
  const asked: { readonly isDescending: boolean; readonly values: readonly unknown[] }[] = []
  const database = {
    read: async (text: string, values: readonly unknown[]) => {
      asked.push({ isDescending: text.includes('order by seq desc'), values })
      return answers[asked.length - 1] ?? []
    },
  }
  const log = { database, id: 'c', head: 10 } as unknown as Parameters<typeof readPage>[0]
  return { log, asked }
}

const seqsOf = ({ events }: Awaited<ReturnType<typeof readPage>>): number[] => events.map(({ seq }) => seq)

test('a page has the events of its range, and says how far it was read if there are more', async () => {
  const { log, asked } = logOf([row(4), row(5), next(6)])
  const page = await readPage(log, { afterSeq: 3, beforeSeq: 9, limit: 2 })
  expect([seqsOf(page), page.scannedTo]).toEqual([[4, 5], 5])
  expect(asked).toEqual([{ isDescending: false, values: ['c', 4, 8, undefined, undefined, 3, 2, 16 * 1024 * 1024] }])
})

test('the last page says that it is the last one', async () => {
  const { log } = logOf([row(9), row(10)])
  const page = await readPage(log, { afterSeq: 8, limit: 2 })
  expect([seqsOf(page), page.scannedTo]).toEqual([[9, 10], undefined])
})

test('a page from the end is in the other order', async () => {
  const { log, asked } = logOf([row(10), row(9), next(8)])
  const page = await readPage(log, { order: 'desc', limit: 2 })
  expect([seqsOf(page), page.scannedTo, asked[0]?.isDescending]).toEqual([[10, 9], 9, true])
})

test('nothing is asked for an empty range', async () => {
  const { log, asked } = logOf()
  for (const range of [{ limit: 0 }, { limit: 1, afterSeq: 10 }, { limit: 1, afterSeq: 3, beforeSeq: 4 }])
    expect(await readPage(log, range)).toEqual({ events: [], scannedTo: undefined })
  expect(asked).toEqual([])
})

test('a page ends with the event that makes it as large as it may be', async () => {
  const { log } = logOf([row(1), row(2), next(3)])
  const page = await readPage(log, { limit: 9, maxBytes: 20 })
  expect([seqsOf(page), page.scannedTo]).toEqual([[1, 2], 2])
})

test('a search reads on until it has found enough', async () => {
  const first = [row(1), row(2, { json: JSON.stringify({ seq: 2, type: 'ClientEvent', name: 'wanted' }) }), next(3)]
  const second = [row(3, { json: JSON.stringify({ seq: 3, type: 'ClientEvent', name: 'wanted' }) }), row(4)]
  const { log, asked } = logOf(first, second)
  const page = await readPage(log, { limit: 9, beforeSeq: 5, q: 'wanted' })
  expect([seqsOf(page), page.scannedTo]).toEqual([[2, 3], undefined])
  expect(asked.map(({ values }) => values.slice(1, 3))).toEqual([
    [1, 4],
    [3, 4],
  ])
  expect(seqsOf(await readPage(logOf(first, second).log, { limit: 1, q: 'wanted' }))).toEqual([2])
})

describe('a log is damaged', () => {
  const range = { afterSeq: 3, beforeSeq: 7, limit: 9 }

  test.each<[string, readonly Row[], number]>([
    ['if its first event is missing', [row(5), row(6)], 4],
    ['if one in between is missing', [row(4), row(6)], 5],
    ['if the last one is missing', [row(4), row(5)], 6],
    ['if all are missing', [], 4],
  ])('%s', async (_what, rows, line) => {
    const damage = { code: 'conversation_damaged', details: { line } }
    await expect(readPage(logOf(rows).log, range)).rejects.toMatchObject(damage)
    const fromEnd = readPage(logOf(rows.toReversed()).log, { ...range, order: 'desc' })
    await expect(fromEnd).rejects.toMatchObject({ code: 'conversation_damaged' })
  })

  test('not, if only some types are asked for, or if there are more', async () => {
    const some = { ...range, types: new Set(['ClientEvent']) } as Parameters<typeof readPage>[1]
    expect(seqsOf(await readPage(logOf([row(4), row(6)]).log, some))).toEqual([4, 6])
    expect(seqsOf(await readPage(logOf([row(4), next(5)]).log, { ...range, limit: 1 }))).toEqual([4])
    expect(seqsOf(await readPage(logOf([row(4), row(5), row(6)]).log, range))).toEqual([4, 5, 6])
  })
})

/** The summaries in a database: which ones are written together, forgotten, and read again. */
import { expect, test } from 'vitest'
import { SUMMARY_FORMAT, SummaryRows } from '../../../src/storage/postgres/caches.ts'
import type { Summary } from '../../../src/storage/summary.ts'

const summary = (id: string, lastSeq = 1) => ({ id, lastSeq }) as unknown as Summary

/** A database that answers every read with these rows. */
function setUp(rows: readonly object[] = []) {
  const seen = { writes: [] as (readonly unknown[])[], faults: [] as unknown[] }
  const away = { is: false }
  const answer = async <T>(value: T): Promise<T> => {
    if (away.is) throw new Error('the database is away')
    return value
  }
  const database = {
    read: () => answer(rows),
    write: (_: string, values: readonly unknown[]) => answer([]).finally(() => seen.writes.push(values)),
  } as unknown as ConstructorParameters<typeof SummaryRows>[0]
  return { table: new SummaryRows(database, (error) => void seen.faults.push(error)), seen, away }
}

test('what changes together is written together, each conversation as it is last', async () => {
  const { table, seen } = setUp()
  table.noteFor('a')(summary('a', 1))
  table.noteFor('b')(summary('b', 5))
  table.noteFor('a')(summary('a', 2))
  await table.forget('c')
  const json = [summary('a', 2), summary('b', 5)].map((each) => JSON.stringify(each))
  expect(seen.writes).toEqual([[['c'], ['a', 'b'], [2, 5], json, SUMMARY_FORMAT]])
})

test('summaries of conversations that are not there are forgotten, and others are kept', async () => {
  const { table, seen } = setUp([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
  await table.tidy((id) => id === 'b')
  expect(seen.writes).toEqual([[['a', 'c'], [], [], [], SUMMARY_FORMAT]])
})

test('a summary is current only if its log has the same head, and is known also if it has not', async () => {
  const part = (...all: Summary[]) => JSON.stringify(all)
  const { table } = setUp([
    { part: part(summary('a')), is_current: true },
    { part: part(summary('b'), summary('c')), is_current: false },
  ])
  const noted = await table.read()
  expect(await noted.current(['a', 'b', 'd'], new AbortController().signal)).toEqual([
    summary('a'),
    undefined,
    undefined,
  ])
  expect(['a', 'b', 'd'].map((id) => noted.last(id))).toEqual([summary('a'), summary('b'), undefined])
})

test('a database that is away loses no more than the cache, and is reported', async () => {
  const { table, seen, away } = setUp()
  away.is = true
  const noted = await table.read()
  expect(await noted.current(['a'], new AbortController().signal)).toEqual([undefined])
  await table.tidy(() => true)
  await table.forget('a')
  expect(seen.faults).toHaveLength(3)
  away.is = false
  await table.forget('b')
  expect(seen.writes.at(-1)?.[0]).toEqual(['b'])
})

/** What becomes of appends, by what the database says of them, and after a connection broke. */
import { describe, expect, test } from 'vitest'
import type { AppendEntry, AppendResult } from '../../../src/storage/postgres/append-lanes.ts'
import { AppendLanes } from '../../../src/storage/postgres/append-lanes.ts'
import { LostStatement } from '../../../src/storage/postgres/database-errors.ts'
import type { PostgresRow } from '../../../src/storage/postgres/session.ts'

const OWNER = 7

const entry = (id: string, more: Partial<AppendEntry> = {}): AppendEntry => ({
  id,
  epoch: 5,
  head: 2,
  events: [3, 4].map((seq) => ({ seq, at: seq * 10, type: 'T', source: 'user', json: `{"${id}":${seq}}` })),
  listing: undefined,
  isPatient: false,
  onLimit: () => {},
  ...more,
})

type Answer = () => Promise<PostgresRow[]>

/** Lanes over a database with these answers, in order. An outage is over at once. */
function setUp(...answers: readonly Answer[]) {
  const asked: { readonly text: string; readonly values: readonly unknown[] }[] = []
  const seen = { stored: 0, fenced: 0 }
  const database = {
    outage: () => ({
      wait: async (error: unknown) => {
        if (!(error instanceof LostStatement)) throw error
      },
    }),
    runOnce: (text: string, values: readonly unknown[]) => {
      asked.push({ text, values })
      return answers[asked.length - 1]?.() ?? Promise.reject(new Error('nothing more is expected'))
    },
  } as unknown as ConstructorParameters<typeof AppendLanes>[0]
  const lanes = new AppendLanes(database, OWNER, { onStored: () => seen.stored++, onFenced: () => seen.fenced++ })
  return { lanes, asked, seen }
}

const row =
  (fields: object): Answer =>
  () =>
    Promise.resolve([fields as PostgresRow])
const lost: Answer = () => Promise.reject(new LostStatement('the connection broke'))
const stored = row({ is_stored: true })

describe('an append', () => {
  test.each<[string, object, AppendResult]>([
    ['that was stored keeps its epoch', { is_stored: true }, { kind: 'stored', epoch: 5 }],
    ['without a row differs', {}, { kind: 'differs', head: undefined }],
    ['of another owner is fenced', { head_now: 2, owner_now: 8, epoch_now: 5 }, { kind: 'fenced' }],
    [
      'of an owner that has opened it again is fenced',
      { head_now: 2, owner_now: OWNER, epoch_now: 6 },
      { kind: 'fenced' },
    ],
    ['with another head differs', { head_now: 9, owner_now: OWNER, epoch_now: 5 }, { kind: 'differs', head: 9 }],
    ['with an older epoch differs', { head_now: 1, owner_now: OWNER, epoch_now: 4 }, { kind: 'differs', head: 1 }],
  ])('%s', async (_what, answer, result) => {
    const { lanes, seen } = setUp(row(answer))
    expect(await lanes.append(entry('a'))).toEqual(result)
    expect(seen).toEqual({ stored: result.kind === 'stored' ? 1 : 0, fenced: result.kind === 'fenced' ? 1 : 0 })
  })

  test('whose row is unchanged, and that was not stored, is one of an instance that another one has replaced', async () => {
    const { lanes, seen } = setUp(row({ head_now: 2, owner_now: OWNER, epoch_now: 5 }))
    await expect(lanes.append(entry('a'))).rejects.toMatchObject({ code: 'storage_unavailable' })
    expect(seen).toEqual({ stored: 0, fenced: 0 })
  })

  test('has its events, its head and its epoch in the statement, next to those of others', async () => {
    const { promise, resolve } = Promise.withResolvers<PostgresRow[]>()
    const both: Answer = () => Promise.resolve([{ is_stored: true }, { is_stored: true }] as PostgresRow[])
    const { lanes, asked } = setUp(
      () => promise,
      () => promise,
      both,
    )
    const appends = [lanes.append(entry('a')), lanes.append(entry('b'))]
    const later = [lanes.append(entry('c')), lanes.append(entry('d', { listing: '{}', head: 3 }))]
    expect(asked.map(({ values }) => values[1])).toEqual([['a'], ['b']])
    expect(asked[0]?.values).toEqual([
      OWNER,
      ['a'],
      [5],
      [2],
      [2],
      [40],
      [1, 1],
      [3, 4],
      [30, 40],
      ['T', 'T'],
      ['user', 'user'],
      ['{"a":3}', '{"a":4}'],
      null,
    ])
    resolve([{ is_stored: true }])
    await Promise.all([...appends, ...later])
    expect(asked).toHaveLength(3)
    expect(asked[2]?.values.slice(1, 7)).toEqual([
      ['c', 'd'],
      [5, 5],
      [2, 3],
      [2, 2],
      [40, 40],
      [1, 1, 2, 2],
    ])
    expect(asked[2]?.values.at(-1)).toEqual([undefined, '{}'])
  })

  test('that is refused permanently rejects with why, and others are stored', async () => {
    const { lanes } = setUp(() => Promise.reject(new Error('no')), stored)
    await expect(lanes.append(entry('a'))).rejects.toThrow('no')
    expect(await lanes.append(entry('b'))).toEqual({ kind: 'stored', epoch: 5 })
  })

  test('begins another statement when one has become too large', async () => {
    const { promise, resolve } = Promise.withResolvers<PostgresRow[]>()
    const { lanes, asked } = setUp(
      () => promise,
      () => promise,
      stored,
      stored,
      stored,
    )
    const large = (id: string) =>
      entry(id, { events: [{ seq: 3, at: 1, type: 'T', source: 'user', json: 'x'.repeat(5 * 1024 * 1024) }] })
    const appends = ['a', 'b', 'c', 'd', 'e'].map((id) => lanes.append(large(id)))
    resolve([{ is_stored: true }])
    await Promise.all(appends)
    expect(asked.map(({ values }) => values[1])).toEqual([['a'], ['b'], ['c'], ['d'], ['e']])
  })
})

describe('an append whose connection broke', () => {
  test.each<[string, object | undefined, AppendResult]>([
    ['was stored, if the head is behind it', { id: 'a', epoch_now: 6, head_now: 4 }, { kind: 'stored', epoch: 6 }],
    ['differs, if the head is elsewhere', { id: 'a', epoch_now: 6, head_now: 3 }, { kind: 'differs', head: 3 }],
    ['is fenced, if its owner has lost it', undefined, { kind: 'fenced' }],
    ['is fenced, if only others are there', { id: 'b', epoch_now: 6, head_now: 4 }, { kind: 'fenced' }],
  ])('%s', async (_what, answer, result) => {
    const { lanes, asked } = setUp(lost, () => Promise.resolve((answer ? [answer] : []) as PostgresRow[]))
    expect(await lanes.append(entry('a'))).toEqual(result)
    expect(asked[1]?.values).toEqual([OWNER, ['a']])
  })

  test('is made again with the new epoch, if it was not stored', async () => {
    const { lanes, asked } = setUp(lost, row({ id: 'a', epoch_now: 6, head_now: 2 }), stored)
    expect(await lanes.append(entry('a'))).toEqual({ kind: 'stored', epoch: 6 })
    expect(asked[2]?.values.slice(1, 4)).toEqual([['a'], [6], [2]])
  })

  test('is decided when the database answers again, and is uncertain if it does not any more', async () => {
    const again = setUp(lost, lost, row({ id: 'a', epoch_now: 6, head_now: 4 }))
    expect(await again.lanes.append(entry('a'))).toEqual({ kind: 'stored', epoch: 6 })
    const never = setUp(lost, () => Promise.reject(new Error('closed')))
    await expect(never.lanes.append(entry('a'))).rejects.toMatchObject({ code: 'storage_failed' })
  })
})

/** After a connection broke, logs are compared with the database: a standby that was behind has fewer events. */
import { expect, test } from 'vitest'
import { setImmediate as tick } from 'node:timers/promises'
import type { PostgresRow } from '../../../src/storage/postgres/session.ts'
import { PostgresStore } from '../../../src/storage/postgres/postgres-store.ts'

const ids = ['a', 'b', 'c', 'd'].map((letter) => `018f0000-0000-7000-8000-00000000000${letter}`)

/** A store over a database that answers what it is told to. */
function setUp() {
  const reads: unknown[][] = []
  let answer: () => Promise<PostgresRow[]> = () => Promise.resolve([])
  const database = {
    onBroken: () => {},
    write: (_text: string, [id]: unknown[]) => Promise.resolve([{ id, epoch: 1, head: 5, last_at: 0 }]),
    read: (_text: string, values: unknown[]) => {
      reads.push(values)
      return answer()
    },
  }
  const ownership = { database, incarnation: 1 } as unknown as ConstructorParameters<
    typeof PostgresStore
  >[0]['ownership']
  const store = new PostgresStore({ ownership })
  return { store, reads, breakOff: () => database.onBroken(), answerWith: (next: typeof answer) => (answer = next) }
}

test('a log of which the database has fewer events than it had acknowledged is lost, and no other', async () => {
  const { store, reads, breakOff, answerWith } = setUp()
  const logs = await Promise.all(ids.map((id) => store.create(id)))
  const lost: string[] = []
  for (const log of logs) void log.whenLost?.then(() => lost.push(log.conversationId))
  answerWith(() => Promise.resolve([5, 6, 4].map((head, at) => ({ id: ids[at], head }))))
  breakOff()
  await tick()
  expect(reads).toEqual([[ids]])
  expect(lost).toEqual([ids[2], ids[3]])
  await expect(logs[2]!.append([])).rejects.toMatchObject({ code: 'storage_failed' })
})

test('one comparison runs at a time, and the next one after it, also if it failed', async () => {
  const { store, reads, breakOff, answerWith } = setUp()
  breakOff()
  expect(reads).toEqual([])
  const log = await store.create(ids[0]!)
  let isLost = false
  void log.whenLost?.then(() => (isLost = true))
  const { promise, reject } = Promise.withResolvers<PostgresRow[]>()
  answerWith(() => promise)
  for (const _ of [1, 2]) breakOff()
  expect(reads).toHaveLength(1)
  reject(new Error('the outage is too long'))
  await tick()
  expect(isLost).toBe(false)
  answerWith(() => Promise.resolve([{ id: ids[0], head: 4 }]))
  breakOff()
  await tick()
  expect([reads.length, isLost]).toEqual([2, true])
})

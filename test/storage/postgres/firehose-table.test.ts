/** The firehoses of two instances on one real database: their order is the one of the appends. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Client } from 'pg'
import { follow } from '../../../src/events/event-feed.ts'
import { EventLog } from '../../../src/events/event-log.ts'
import { Firehose } from '../../../src/events/firehose.ts'
import type { FirehoseEvent } from '../../../src/events/firehose/firehose-record.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/postgres-storage.ts'
import { message, tempDirectory } from '../../events/fixtures.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { createDatabase } from '../../support/postgres.ts'
import { takeTime } from '../../support/take-time.ts'

let database: TestDatabase
let place: Awaited<ReturnType<typeof tempDirectory>>

beforeAll(async () => {
  database = await createDatabase()
  place = await tempDirectory()
})
afterAll(async () => {
  await place[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** One instance: its storage, its open logs and its firehose. */
async function startInstance({ url }: TestDatabase = database) {
  const faults: unknown[] = []
  const onFault = (error: unknown) => void faults.push(error)
  const storage = await openPostgresStorage({
    url,
    directory: join(place.path, uuid7()),
    operatorKeys: ['key of the operator'],
    serverVersion: 'test',
    sharing: 'shared',
    onFault,
  })
  const firehose = new Firehose({ orders: storage.firehose, store: storage, heads: () => [], onFault })
  const logs: EventLog[] = []
  return {
    faults,
    firehose,
    async create(): Promise<EventLog> {
      const own = storage.conversation(uuid7())
      await own.reserve()
      const log = new EventLog({ log: await own.createLog({}), onListenerError: onFault })
      firehose.attach(log)
      logs.push(log)
      return log
    },
    async [Symbol.asyncDispose]() {
      for (const log of logs) await log.close('closing')
      await firehose.close()
      await storage[Symbol.asyncDispose]()
    },
  }
}

type Seen = { readonly cursor: string; readonly id: string; readonly seq: number }

/** Reads until so many events have come. */
async function take(firehose: Firehose, count: number, cursor: string): Promise<Seen[]> {
  using reader = await firehose.open()
  const seen: Seen[] = []
  for await (const { records } of follow(reader, { afterSeq: reader.positionOf(cursor) })) {
    for (const record of records) {
      if (record.seq === undefined) continue
      const { event, cursor: at } = record as FirehoseEvent
      seen.push({ cursor: at, id: event.conversation_id, seq: event.seq })
    }
    if (seen.length >= count) break
  }
  return seen
}

const WRITERS = 12
const APPENDS = 12

test('readers of two instances get every event once and in one order, while transactions pause and are rolled back', async () => {
  await using first = await startInstance()
  await using second = await startInstance()
  // Between the position of a row and its commit.
  await database.query(`
    create function pause() returns trigger language plpgsql as 'begin perform pg_sleep(case when random() < 0.1 then 0.3 else 0 end); return new; end';
    create trigger pause before insert on firehose for each row execute function pause()`)
  const instances = [first, second]
  const count = WRITERS * APPENDS * 2
  const reading = Promise.all(instances.map(({ firehose }) => take(firehose, count, '0')))
  const appends = Promise.all(
    Array.from({ length: WRITERS }, async (_, i) => {
      const log = await instances[i % 2]!.create()
      for (let n = 0; n < APPENDS; n++) {
        await log.append([message(`${n}`), message(`${n} again`)])
        await takeTime(Math.random() * 5)
      }
    }),
  )
  const rolledBack = rollBack(10)
  await Promise.all([appends, rolledBack])
  const [one, other] = await reading

  expect(one).toEqual(other)
  const seqs = Map.groupBy(one!, ({ id }) => id)
  expect(seqs.size).toBe(WRITERS)
  for (const own of seqs.values())
    expect(own.map(({ seq }) => seq)).toEqual(Array.from({ length: APPENDS * 2 }, (_, i) => i + 1))
  // Also in the middle of an append.
  for (const at of [0, 1, 2, 77, count - 2])
    for (const { firehose } of instances)
      expect(await take(firehose, count - at - 1, one![at]!.cursor)).toEqual(one!.slice(at + 1))
  expect(instances.flatMap(({ faults }) => faults)).toEqual([])
})

/** What a transaction that fails leaves behind: positions that no event has. */
async function rollBack(times: number): Promise<void> {
  const client = new Client({ connectionString: database.url })
  await client.connect()
  for (let i = 0; i < times; i++) {
    await client.query('begin')
    await client.query('select add_to_firehose($1, 1, 3)', [uuid7()])
    await takeTime(Math.random() * 30)
    await client.query('rollback')
  }
  await client.end()
}

test('an append of more events than a row has positions for is read whole, page by page', async () => {
  await using own = await createDatabase()
  await using instance = await startInstance(own)
  const log = await instance.create()
  const drafts = Array.from({ length: 2500 }, (_, i) => message(`${i}`))
  const reading = take(instance.firehose, drafts.length, '0')
  await log.append(drafts)
  expect((await reading).map(({ seq }) => seq)).toEqual(drafts.map((_, i) => i + 1))
})

test('beyond its bound the oldest rows are removed: an older cursor is refused, a reader there ends, and 0 begins with the oldest row', async () => {
  await using own = await createDatabase()
  await using instance = await startInstance(own)
  const log = await instance.create()
  for (let i = 0; i < 5; i++) await log.append([message(`${i}`)])
  const all = await take(instance.firehose, 5, '0')
  using slow = await instance.firehose.open()
  const overtaken = follow(slow, { afterSeq: slow.positionOf(all[0]!.cursor) })[Symbol.asyncIterator]()
  expect((await own.query('select trim_firehose(2, 1000) as is_more'))[0]).toEqual({ is_more: false })
  await log.append([message('the next')])
  await expect(overtaken.next()).rejects.toThrow('no longer has the events after this cursor')
  const left = await take(instance.firehose, 3, '0')
  expect(left.map(({ seq }) => seq)).toEqual([4, 5, 6])
  using reader = await instance.firehose.open()
  expect(() => reader.positionOf(all[0]!.cursor)).toThrow('no longer has the events after this cursor')
  expect(() => reader.positionOf(all[3]!.cursor)).not.toThrow()
})

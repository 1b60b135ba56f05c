import { appendFile, open, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { follow } from '../../src/events/event-feed.ts'
import type { FollowOptions } from '../../src/events/event-feed.ts'
import { EventLog } from '../../src/events/event-log.ts'
import { Firehose } from '../../src/events/firehose.ts'
import { FirehoseFile } from '../../src/storage/files/firehose/firehose-file.ts'
import type { FirehoseEvent } from '../../src/events/firehose/firehose-record.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import type { PublishedRecord } from '../../src/events/sse-frame.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { effort } from '../support/patience.ts'
import { createRandom } from '../support/random.ts'
import type { TempDirectory } from './fixtures.ts'
import { delta, message, tempDirectory, toolResult } from './fixtures.ts'
import { takeTime } from '../support/take-time.ts'

/** One life of the server: its store, its open logs and its firehose, on the same files. */
function startLife(directory: string, ids: readonly string[]) {
  const store = createJsonlStore({ directory: join(directory, 'sessions') })
  const faults: unknown[] = []
  let order: FirehoseFile | undefined
  const firehose = new Firehose({
    orders: { open: async () => (order = await FirehoseFile.open(indexOf(directory))) },
    store,
    heads: () => ids.map((id) => [id, undefined] as const),
    onFault: (error) => faults.push(error),
  })
  const logs: EventLog[] = []
  const share = async (id: string, isNew: boolean): Promise<EventLog> => {
    const stored = isNew ? await store.create(id) : (await store.open(id)).log
    const log = new EventLog({ log: stored, onListenerError: (error) => faults.push(error) })
    firehose.attach(log)
    logs.push(log)
    return log
  }
  return {
    store,
    firehose,
    /** Of how many conversations it remembers something. */
    conversationCount: () => order?.conversationCount,
    faults,
    create: (id: string) => share(id, true),
    open: (id: string) => share(id, false),
    async stop() {
      for (const log of logs) await log.close('closing')
      await firehose.close()
    },
  }
}

const indexOf = (directory: string) => join(directory, 'firehose')

type Seen = { readonly cursor: string; readonly key: string }

/** Reads until so many events have come; answers them with their cursors. */
async function take(firehose: Firehose, count: number, cursor?: string, options: FollowOptions = {}): Promise<Seen[]> {
  using reader = await firehose.open()
  const seen: Seen[] = []
  const position = cursor === undefined ? {} : { afterSeq: reader.positionOf(cursor) }
  for await (const { records } of follow(reader, { ...position, ...options })) {
    for (const record of records) if (record.seq !== undefined) seen.push(seenOf(record as FirehoseEvent))
    if (seen.length >= count) break
  }
  return seen
}

const seenOf = ({ cursor, event }: FirehoseEvent): Seen => ({ cursor, key: `${event.conversation_id} ${event.seq}` })
const keysOf = (seen: readonly Seen[]) => seen.map(({ key }) => key)
const keys = (id: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `${id} ${from + i}`)

describe('the firehose', () => {
  let directory: TempDirectory
  let ids: string[]
  let life: ReturnType<typeof startLife>

  beforeEach(async () => {
    directory = await tempDirectory()
    ids = [uuid7(), uuid7(), uuid7()]
    life = startLife(directory.path, ids)
  })
  afterEach(async () => {
    await life.stop()
    await directory[Symbol.asyncDispose]()
  })

  const restart = async () => {
    await life.stop()
    life = startLife(directory.path, ids)
  }

  test('delivers the events of all conversations, including idle ones, without opening them', async () => {
    const [first, second] = await Promise.all(ids.slice(0, 2).map((id) => life.create(id)))
    await first!.append([message('a'), message('b')])
    await second!.append([message('c')])
    await restart()
    const third = await life.create(ids[2]!)
    await third.append([message('d')])
    const seen = await take(life.firehose, 4, '0')
    expect(keysOf(seen).toSorted()).toEqual(
      [...keys(ids[0]!, 1, 2), ...keys(ids[1]!, 1, 1), ...keys(ids[2]!, 1, 1)].sort(),
    )
    // A writer that had been there would be fenced by now, and could not go on.
    expect((await life.open(ids[0]!)).head).toBe(2)
  })

  test('switches from backlog to live events in the order of storage, and a cursor stays valid after restarts', async () => {
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    const random = createRandom(7)
    let expected: string[] = []
    const seen: Seen[] = []
    for (let round = 0; round < 20; round++) {
      const reading = take(life.firehose, 6, seen.at(-1)?.cursor ?? '0')
      for (let i = 0; i < 6; i++) {
        const log = random.pick(logs)
        const [stored] = await log.append([message(`${round}.${i}`)])
        expected = [...expected, `${log.conversationId} ${stored!.seq}`]
      }
      seen.push(...(await reading))
      if (round % 5 !== 4) continue
      await restart()
      logs.splice(0, logs.length, ...(await Promise.all(ids.map((id) => life.open(id)))))
    }
    const missing = expected.length - seen.length
    if (missing > 0) seen.push(...(await take(life.firehose, missing, seen.at(-1)!.cursor)))
    expect(keysOf(seen).toSorted()).toEqual(expected.toSorted())
    for (const id of ids) {
      const own = keysOf(seen).filter((key) => key.startsWith(id))
      expect(own).toEqual(keys(id, 1, own.length))
    }
  })

  test('has for each reader what was stored before it came, also if another one listens already', async () => {
    const log = await life.create(ids[0]!)
    const readers = [await life.firehose.open()]
    for (let stored = 1; stored <= 3; stored++) {
      await log.append([message(`${stored}`)])
      const reader = await life.firehose.open()
      readers.push(reader)
      expect(reader.head).toBe(stored)
    }
    for (const reader of readers) reader[Symbol.dispose]()
  })

  test('shows a reader that listens the events that a log has when it is attached, before what comes after them', async () => {
    const [first, second] = ids
    const log = await life.create(first!)
    using reader = await life.firehose.open()
    const seen: string[] = []
    reader.subscribe({
      onEvents: (events) => seen.push(...events.map(({ event }) => `${event.conversation_id} ${event.seq}`)),
      onTransient: ({ event }) => seen.push(event.type),
    })
    const stored = await life.store.create(second!)
    await stored.append([message('a'), message('b')])
    await stored.close()
    const attached = new EventLog({ log: (await life.store.open(second!)).log, onListenerError: () => {} })
    // Its event is being stored in the order, and what comes meanwhile is shown together.
    await log.append([message('c')])
    life.firehose.attach(attached)
    attached.publish(delta(uuid7(), 0, 'Hel'))
    await expect.poll(() => seen.length).toBe(4)
    expect(seen).toEqual([...keys(first!, 1, 1), ...keys(second!, 1, 2), 'AssistantDelta'])
    await attached.close('closing')
  })

  test('gives two readers the same order, and each the events after its own cursor', async () => {
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    await Promise.all(logs.flatMap((log) => Array.from({ length: 50 }, (_, i) => log.append([message(`${i}`)]))))
    const all = await take(life.firehose, 150, '0')
    expect(await take(life.firehose, 150, '0')).toEqual(all)
    expect(await take(life.firehose, 50, all[99]!.cursor)).toEqual(all.slice(100))
    await restart()
    expect(await take(life.firehose, 150, '0')).toEqual(all)
  })

  test('restores index entries that a crash has lost or torn from the logs', async () => {
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    await Promise.all(logs.flatMap((log) => Array.from({ length: 10 }, (_, i) => log.append([message(`${i}`)]))))
    const all = await take(life.firehose, 30, '0')
    const { size } = await stat(indexOf(directory.path))
    for (const cut of [1, 24, 100, 300]) {
      await life.stop()
      await truncate(indexOf(directory.path), size - cut)
      life = startLife(directory.path, ids)
      const kept = 30 - Math.ceil(cut / 24)
      const again = await take(life.firehose, 30, '0')
      expect(again.slice(0, kept), `${cut} bytes cut`).toEqual(all.slice(0, kept))
      expect(keysOf(again).toSorted()).toEqual(keysOf(all).toSorted())
      expect(await take(life.firehose, 30 - kept, all[kept - 1]!.cursor)).toEqual(again.slice(kept))
    }
    await life.stop()
    // A page that never reached the disk, and garbage behind it.
    const file = await open(indexOf(directory.path), 'r+')
    await file.write(Buffer.alloc(48), 0, 48, 24 * 21)
    await file.close()
    await appendFile(indexOf(directory.path), 'garbage')
    life = startLife(directory.path, ids)
    expect(keysOf(await take(life.firehose, 30, '0')).toSorted()).toEqual(keysOf(all).toSorted())
  })

  test('reads no log whose last seq is known, and still delivers all of it', async () => {
    const log = await life.create(ids[0]!)
    for (let i = 0; i < 3; i++) await log.append([message(`${i}`)])
    await life.stop()
    let views = 0
    const store = createJsonlStore({ directory: join(directory.path, 'sessions') })
    const looking = { view: (id: string) => (views++, store.view(id)) }
    const heads = () => [[ids[0]!, 3]] as const
    const firehose = new Firehose({
      orders: { open: () => FirehoseFile.open(indexOf(directory.path)) },
      store: looking,
      heads,
      onFault: () => {},
    })
    using reader = await firehose.open()
    expect([reader.head, views]).toEqual([3, 0])
    const page = await reader.read({ afterSeq: 0, limit: 10 })
    expect(keysOf(page.events.map((event) => seenOf(event as FirehoseEvent)))).toEqual(keys(ids[0]!, 1, 3))
    await firehose.close()
  })

  test('is made durable as long as there is a reader, and a reader that leaves twice counts once', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    using reader = await life.firehose.open()
    const other = await life.firehose.open()
    const sync = vi.spyOn(FirehoseFile.prototype, 'sync')
    onTestFinished(() => sync.mockRestore())
    const { head } = reader
    other[Symbol.dispose]()
    other[Symbol.dispose]()
    await log.append([message('b')])
    await expect.poll(() => reader.head).toBe(head + 1)
    expect(sync).toHaveBeenCalledOnce()
    reader[Symbol.dispose]()
    await log.append([message('c')])
    await expect.poll(() => reader.head).toBe(head + 2)
    expect(sync).toHaveBeenCalledOnce()
    expect(reader.positionOf(reader.cursorAt(head))).toBe(head)
    expect(reader.positionOf(reader.freshCursorAt(head))).toBe(head)
  })

  test('refuses the cursor of another index, an invalid one, and one it has not reached', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a'), message('b')])
    const [, last] = await take(life.firehose, 2, '0')
    {
      using reader = await life.firehose.open()
      for (const cursor of ['1', 'x', '', '00', 'AAAAAAAAAAAAAAAAAAA'])
        expect(() => reader.positionOf(cursor), cursor).toThrow(/did not issue this cursor/)
    }
    await life.stop()
    await truncate(indexOf(directory.path), 48)
    life = startLife(directory.path, [])
    {
      using reader = await life.firehose.open()
      expect(() => reader.positionOf(last!.cursor)).toThrow(/has not reached this cursor/)
    }
    await life.stop()
    await truncate(indexOf(directory.path), 5)
    life = startLife(directory.path, ids)
    using reader = await life.firehose.open()
    expect(() => reader.positionOf(last!.cursor)).toThrow(/did not issue this cursor/)
  })

  test('skips deleted and unreadable conversations, and reports the latter', async () => {
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    for (const log of logs) await log.append([message('a')])
    await take(life.firehose, 3, '0')
    await life.stop()
    life = startLife(directory.path, ids)
    await life.store.delete(ids[0]!)
    await truncate(join(directory.path, 'sessions', ids[1]!, 'events.jsonl'), 0)
    await appendFile(join(directory.path, 'sessions', ids[1]!, 'events.jsonl'), 'no event at all\n')
    expect(keysOf(await take(life.firehose, 1, '0'))).toEqual(keys(ids[2]!, 1, 1))
    expect(life.faults).toMatchObject([{ code: 'conversation_damaged' }, { code: 'conversation_damaged' }])
  })

  test('remembers nothing of a deleted conversation, also of those that were deleted while nobody read', async () => {
    const existing = [...ids]
    await life.stop()
    life = startLife(directory.path, existing)
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    for (const log of logs) await log.append([message('a')])
    await take(life.firehose, ids.length, '0')
    expect(life.conversationCount()).toBe(ids.length)
    await logs[0]!.close('deleted')
    life.firehose.announceDeleted({ id: existing.shift()!, userId: undefined })
    await expect.poll(life.conversationCount).toBe(ids.length - 1)
    expect(keysOf(await take(life.firehose, ids.length, '0'))).toHaveLength(ids.length)

    await life.stop()
    existing.shift()
    life = startLife(directory.path, existing)
    await life.firehose.open()
    expect(life.conversationCount()).toBe(existing.length)
  })

  test('a page is bounded in bytes, and one event of any size is delivered', async () => {
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    const large = 'x'.repeat(700_000)
    for (let i = 0; i < 4; i++) for (const log of logs) await log.append([toolResult(large), message('small')])
    using reader = await life.firehose.open()
    let [read, afterSeq]: [Seen[], number | undefined] = [[], 0]
    while (afterSeq !== undefined) {
      const page = await reader.read({ afterSeq, limit: 256, maxBytes: 1_000_000 })
      expect(page.events.reduce((sum, { json }) => sum + json.length, 0)).toBeLessThan(2_000_000)
      read = [...read, ...page.events.map((event) => seenOf(event as FirehoseEvent))]
      afterSeq = page.scannedTo
    }
    expect(read).toHaveLength(24)
    expect(read).toEqual(await take(life.firehose, 24, '0'))
    const filtered = await take(life.firehose, 12, '0', { types: new Set(['UserMessage']) })
    expect(keysOf(filtered)).toEqual(keysOf(read).filter((key) => Number(key.split(' ')[1]) % 2 === 0))
  })

  test('every page advances, also after a log was restored from an older copy and written on', async () => {
    const path = join(directory.path, 'sessions', ids[0]!, 'events.jsonl')
    const large = toolResult('x'.repeat(60_000))
    const log = await life.create(ids[0]!)
    for (let i = 0; i < 5; i++) await log.append([large])
    const copy = await readFile(path)
    for (let i = 0; i < 5; i++) await log.append([large])
    await take(life.firehose, 10, '0')
    await life.stop()
    await writeFile(path, copy)
    life = startLife(directory.path, ids)
    const again = await life.open(ids[0]!)
    await take(life.firehose, 5, '0')
    for (let i = 0; i < 5; i++) await again.append([large])
    using reader = await life.firehose.open()
    const seen: Seen[] = []
    for (let afterSeq: number | undefined = 0; afterSeq !== undefined;) {
      const page = await reader.read({ afterSeq, limit: 256, maxBytes: 100_000 })
      expect(page.scannedTo ?? Infinity).toBeGreaterThan(afterSeq)
      seen.push(...page.events.map((event) => seenOf(event as FirehoseEvent)))
      afterSeq = page.scannedTo
    }
    // The positions of what the restored log has lost tell what took its place.
    expect(keysOf(seen)).toEqual([...keys(ids[0]!, 1, 10), ...keys(ids[0]!, 6, 10)])
  })

  test('deltas keep their order among the events, and a reader who joins during a message gets its beginning once', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    using early = await life.firehose.open()
    using late = await life.firehose.open()
    const messageId = uuid7()
    const seen: Record<'early' | 'late', string[]> = { early: [], late: [] }
    const tell = (whose: 'early' | 'late') => ({
      onEvents: (events: readonly PublishedRecord[]) => void seen[whose].push(...events.map(({ type }) => type)),
      onTransient: ({ event }: PublishedRecord) => {
        if (event.type === 'AssistantDelta') seen[whose].push(event.text_delta!)
      },
    })
    early.subscribe(tell('early'))
    log.publish(delta(messageId, 0, 'one'))
    const appended = log.append([message('b')])
    await appended
    log.publish(delta(messageId, 3, 'two'))
    late.subscribe(tell('late'))
    for (const { event } of late.messagesSoFar()) if (event.type === 'AssistantDelta') seen.late.push(event.text_delta!)
    log.publish(delta(messageId, 6, 'three'))
    await expect.poll(() => seen.late).toEqual(['onetwo', 'UserMessage', 'three'])
    expect(seen.early).toEqual(['one', 'UserMessage', 'two', 'three'])
  })

  test('events that were copied into a log, as in a fork, are delivered in order among the others', async () => {
    const [log, other] = [await life.create(ids[0]!), await life.create(ids[1]!)]
    await log.append([message('a')])
    using reader = await life.firehose.open()
    const live: Seen[] = []
    reader.subscribe({ onEvents: (events) => live.push(...events.map((event) => seenOf(event as FirehoseEvent))) })
    const { log: unseen } = await life.store.open(ids[0]!)
    for (let i = 0; i < 300; i++) await unseen.append([message(`unseen ${i}`)])
    await unseen.close()
    const before = other.append([message('before')])
    const again = await life.open(ids[0]!)
    await Promise.all([before, again.append([message('behind')]), other.append([message('after')])])
    await expect.poll(() => live.length).toBe(303)
    expect(live).toEqual((await take(life.firehose, 304, '0')).slice(1))
    expect(keysOf(live).filter((key) => key.startsWith(ids[0]!))).toEqual(keys(ids[0]!, 2, 302))
  })

  /** A log that contains events which it never reports, as that of a fork. */
  const copy = async (id: string, count: number) => {
    const { log } = await life.store.open(id).catch(async () => ({ log: await life.store.create(id) }))
    for (let i = 0; i < count; i++) await log.append([message(`copied ${i}`)])
    await log.close()
    return await life.open(id)
  }

  /** What a new reader gets, when this happens while a log of which nothing is known yet is being read. */
  const readWhile = async (happens: () => Promise<unknown>) => {
    const view = life.store.view.bind(life.store)
    vi.spyOn(life.store, 'view').mockImplementationOnce(async (id) => {
      const early = await view(id)
      await happens()
      return early
    })
    using reader = await life.firehose.open()
    const { events } = await reader.read({ afterSeq: 0, limit: 100 })
    return keysOf(events.map((event) => seenOf(event as FirehoseEvent)))
  }

  test('events that are stored while the order is being completed are in it once', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    const seen = await readWhile(() => log.append([message('b'), message('c')]))
    expect(seen).toEqual(keys(ids[0]!, 1, 3))
    await log.append([message('d')])
    expect(keysOf(await take(life.firehose, 4, '0'))).toEqual(keys(ids[0]!, 1, 4))
  })

  test('a fork that is made while the order is being completed is in it', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    const fork = uuid7()
    const seen = await readWhile(() => copy(fork, 2))
    expect(seen.toSorted()).toEqual([...keys(ids[0]!, 1, 1), ...keys(fork, 1, 2)].toSorted())
  })

  test('a conversation that is deleted while the order is being completed is forgotten', async () => {
    const existing = [...ids]
    await life.stop()
    life = startLife(directory.path, existing)
    const logs = await Promise.all(ids.map((id) => life.create(id)))
    for (const log of logs) await log.append([message('a')])
    await readWhile(async () => {
      await logs[0]!.close('deleted')
      life.firehose.announceDeleted({ id: existing.shift()!, userId: undefined })
    })
    expect(life.conversationCount()).toBe(existing.length)
  })

  test('a reader that begins to follow just after a fork was made gets its first events too', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    using reader = await life.firehose.open()
    const feed = follow(reader, { afterSeq: 0 })
    const seen: string[] = []
    const read = async () => {
      const { records } = (await feed.next()).value!
      seen.push(...keysOf(records.map((record) => seenOf(record as FirehoseEvent))))
    }
    await read()
    // The fork is on no disk of the firehose yet when the reader, who has read all there is, subscribes.
    const fork = await copy(ids[1]!, 42)
    expect(life.firehose.subscriberCount).toBe(0)
    const reading = read()
    expect(life.firehose.subscriberCount).toBe(1)
    await fork.append([message('its first own event')])
    for (await reading; seen.length < 44;) await read()
    expect(seen).toEqual([...keys(ids[0]!, 1, 1), ...keys(ids[1]!, 1, 43)])
    await feed.return()
  })

  test('a fork that is closed at once ends no stream, and its events are delivered', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    const reading = take(life.firehose, 302, '0')
    await expect.poll(() => life.firehose.subscriberCount).toBe(1)
    const fork = await copy(ids[1]!, 300)
    const appended = fork.append([message('last')])
    const closed = fork.close('closing')
    expect(keysOf(await reading)).toEqual([...keys(ids[0]!, 1, 1), ...keys(ids[1]!, 1, 301)])
    await Promise.all([appended, closed])
    expect(life.faults).toEqual([])
  })

  type Step = { readonly kind: 'append' | 'fork' | 'copy' | 'close' | 'come' | 'leave' | 'wait'; readonly at: number }
  const kinds = fc.constantFrom<Step['kind']>('append', 'append', 'fork', 'copy', 'close', 'come', 'leave', 'wait')
  const steps = fc.array(fc.record({ kind: kinds, at: fc.nat(5) }), { minLength: 20, maxLength: 60, size: 'max' })

  test('property: each reader gets each event of each conversation once and in order, whenever it comes and logs open and close', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        await using own = await tempDirectory()
        await life.stop()
        // As in a server: the firehose learns of each conversation that there is, open or not.
        const made = [uuid7()]
        life = startLife(own.path, made)
        const logs = new Map<string, EventLog>()
        const open = async (id: string) => {
          const log = logs.get(id) ?? (await life.open(id))
          logs.set(id, log)
          return log
        }
        logs.set(made[0]!, await life.create(made[0]!))
        const readers = [0, 1, 2].map(() => ({ seen: [] as Seen[], leave: async () => {}, isHere: false }))
        const come = async (one: (typeof readers)[number], signal: AbortSignal) => {
          using reader = await life.firehose.open()
          const afterSeq = reader.positionOf(one.seen.at(-1)?.cursor ?? '0')
          for await (const { records, end } of follow(reader, {
            afterSeq,
            signal,
            page: { limit: 7, maxBytes: 4096 },
          })) {
            for (const record of records) if (record.seq !== undefined) one.seen.push(seenOf(record as FirehoseEvent))
            if (end !== undefined) expect(end, 'no stream ends by itself').toBe('aborted')
          }
        }
        for (const { kind, at } of plan) {
          const id = made[at % made.length]!
          const reader = readers[at % 3]!
          if (kind === 'wait') await takeTime(at)
          else if (kind === 'append') await (await open(id)).append([message('more')])
          else if (kind === 'fork') {
            const fork = uuid7()
            made.push(fork)
            logs.set(fork, await copy(fork, at * 5 + 1))
            if (at % 2) void logs.get(fork)!.append([message('own')])
          } else if (kind === 'copy') {
            await logs.get(id)?.close('closing')
            logs.set(id, await copy(id, at + 1))
          } else if (kind === 'close') {
            void logs.get(id)?.append([message('last')])
            await logs.get(id)?.close('closing')
            logs.delete(id)
          } else if (kind === 'leave') await reader.leave()
          else if (!reader.isHere) {
            const controller = new AbortController()
            const gone = come(reader, controller.signal)
            reader.isHere = true
            reader.leave = async () => {
              controller.abort()
              await gone
              reader.isHere = false
            }
          }
        }
        await Promise.all(readers.map((reader) => reader.leave()))
        for (const log of logs.values()) await log.append([message('the end')])
        await life.stop()
        life = startLife(own.path, made)
        for (const { seen } of readers) {
          using reader = await life.firehose.open()
          const missing = reader.head - (seen.length > 0 ? reader.positionOf(seen.at(-1)!.cursor) : 0)
          if (missing > 0) seen.push(...(await take(life.firehose, missing, seen.at(-1)?.cursor ?? '0')))
          for (const id of made) {
            const ofOne = keysOf(seen).filter((key) => key.startsWith(id))
            expect(ofOne).toEqual(keys(id, 1, ofOne.length))
          }
          expect(seen).toHaveLength(reader.head)
        }
        expect(life.faults).toEqual([])
      }),
      { numRuns: effort(8, 300) },
    )
  })

  test('leaves no subscriber behind, and does nothing without readers', async () => {
    const log = await life.create(ids[0]!)
    await log.append([message('a')])
    await expect(stat(indexOf(directory.path))).rejects.toThrow(/ENOENT/)
    await take(life.firehose, 1, '0')
    expect(life.firehose.subscriberCount).toBe(0)
    using reader = await life.firehose.open()
    const feed = follow(reader, {})
    const next = feed.next()
    expect(life.firehose.subscriberCount).toBe(1)
    await life.stop()
    expect((await next).value).toMatchObject({ end: 'closing' })
    await feed.return()
    expect(life.firehose.subscriberCount).toBe(0)
    await expect(life.firehose.open()).rejects.toThrow(/stopping/)
  })
})

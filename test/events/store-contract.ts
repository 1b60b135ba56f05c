/** What every event store promises, whatever it is made of: each one has to pass this suite unchanged. */
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import type { Problem } from '../../src/contract/problem.ts'
import type {
  EventFilter,
  EventStore,
  LogViews,
  ReadOptions,
  StoredEvent,
  StoredLog,
} from '../../src/events/event-store.ts'
import { uuid7, uuid7Time } from '../../src/lib/uuid7.ts'
import { append, message, readAll, seqsOf, textOf, toolResult } from './fixtures.ts'
import { effort } from '../support/patience.ts'

export type StoreUnderTest = AsyncDisposable & {
  readonly store: EventStore & LogViews
  /** The same storage as another process would find it. */
  restart(): EventStore & LogViews
}

export function describeStore(name: string, makeStore: (now: () => number) => Promise<StoreUnderTest>): void {
  describe(`${name} keeps the contract of an event store:`, () => {
    let under: StoreUnderTest
    let clock: number
    let id: string

    beforeEach(async () => {
      clock = Date.UTC(2026, 0, 1)
      under = await makeStore(() => clock)
      id = uuid7()
    })
    afterEach(() => under[Symbol.asyncDispose]())

    const reopen = async (): Promise<StoredLog> => (await under.restart().open(id)).log

    describe('copy', () => {
      const source = async (texts: string[]) => {
        const log = await under.store.create(uuid7())
        for (const text of texts) {
          await append(log, message(text))
          clock += 1000
        }
        const events = (await readAll(log)).map((stored) => stored.event)
        return (async function* () {
          yield* events
        })()
      }

      test('begins with the same events, under new ids, and continues with its ending', async () => {
        const copied = await source(['one', 'two'])
        const log = await under.store.copy(id, copied, () => [message('three')])
        expect(log.head).toBe(3)
        await append(log, message('four'))
        for (const each of [log, await reopen()]) {
          const events = (await readAll(each)).map((stored) => stored.event)
          expect(seqsOf(await readAll(each))).toEqual([1, 2, 3, 4])
          expect((await readAll(each)).map(textOf)).toEqual(['one', 'two', 'three', 'four'])
          expect(events.map((event) => event.timestamp.slice(17, 19))).toEqual(['00', '01', '02', '02'])
          for (const event of events) {
            expect(event.conversation_id).toBe(id)
            expect(await each.find(event.id)).toMatchObject({ seq: event.seq })
          }
        }
      })

      test('does not exist if its events end with an error or have a gap', async () => {
        const broken = async function* () {
          yield* await source(['one'])
          throw new Error('no more')
        }
        await expect(under.store.copy(id, broken(), () => [])).rejects.toThrow('no more')
        await expect(under.store.open(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
        const gap = async function* () {
          for await (const event of await source(['one', 'two'])) if (event.seq === 2) yield event
        }
        const other = uuid7()
        await expect(under.store.copy(other, gap(), () => [])).rejects.toThrow('does not follow')
        await expect(under.store.open(other)).rejects.toMatchObject({ code: 'conversation_not_found' })
      })

      test('does not replace an existing log', async () => {
        await append(await under.store.create(id), message('mine'))
        await expect(under.store.copy(id, await source(['one']), () => [])).rejects.toMatchObject({
          code: 'conversation_exists',
        })
        expect((await readAll(await reopen())).map(textOf)).toEqual(['mine'])
      })
    })

    describe('append', () => {
      test('adds the envelope and keeps what it was given', async () => {
        const log = await under.store.create(id)
        const draft = message('hello')
        const [stored] = await append(log, draft)
        expect(stored!.event).toEqual({
          ...draft,
          id: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-7/),
          seq: 1,
          timestamp: '2026-01-01T00:00:00.000Z',
          conversation_id: id,
          version: 1,
        })
        expect(stored).toMatchObject({ seq: 1, type: 'UserMessage' })
        expect(JSON.parse(stored!.json)).toEqual(stored!.event)
        expect(stored!.json).not.toMatch(/[\r\n]/)
      })

      test('numbers events from 1 without gaps, in the order of the calls, however many are made at once', async () => {
        const log = await under.store.create(id)
        const sizes = Array.from({ length: 200 }, (_, i) => i % 4)
        const outcomes = await Promise.all(
          sizes.map((size, i) => append(log, ...Array.from({ length: size }, (_, j) => message(`${i}.${j}`)))),
        )
        const events = outcomes.flat()
        expect(seqsOf(events)).toEqual(events.map((_, i) => i + 1))
        expect(events.map(textOf)).toEqual(
          sizes.flatMap((size, i) => Array.from({ length: size }, (_, j) => `${i}.${j}`)),
        )
        expect(log.head).toBe(events.length)
      })

      test('returns exactly the text that is read later, also by another process', async () => {
        const log = await under.store.create(id)
        const appended = await append(log, message('a'), toolResult({ deep: [1, null] }))
        expect((await readAll(log)).map(({ json }) => json)).toEqual(appended.map(({ json }) => json))
        await log.close()
        expect((await readAll(await reopen())).map(({ json }) => json)).toEqual(appended.map(({ json }) => json))
      })

      test('keeps any text unchanged', async () => {
        const texts = [
          '\u2028\u2029',
          '\ud800',
          'a\udc00b',
          '\0\x01\r\n\t',
          '👩‍👩‍👧 日本',
          '\\"}',
          '"seq":9,"type":"X"',
          '',
        ]
        const log = await under.store.create(id)
        for (const text of texts) await append(log, message(text))
        await log.close()
        expect((await readAll(await reopen())).map(textOf)).toEqual(texts)
      })

      test('keeps an event of 10 MB among small ones', async () => {
        const log = await under.store.create(id)
        const huge = 'é'.repeat(5 * 1024 * 1024)
        await append(log, message('before'), message(huge), message('after'))
        await append(log, message('last'))
        await log.close()
        const reopened = await reopen()
        const texts = (await readAll(reopened)).map(textOf)
        expect(texts.map((text) => text.length)).toEqual([6, huge.length, 5, 4])
        expect(texts[1] === huge).toBe(true)
        expect(seqsOf((await reopened.read({ limit: 2, order: 'desc', beforeSeq: 4 })).events)).toEqual([3, 2])
        expect(seqsOf((await reopened.read({ limit: 1, afterSeq: 2 })).events)).toEqual([3])
      })

      test('reads drafts within the call: changing one afterwards changes nothing', async () => {
        const log = await under.store.create(id)
        const draft = { ...toolResult('as it was') } as { output?: unknown } & EventDraft
        const first = append(log, message('x'))
        const second = append(log, draft)
        draft.output = 'changed'
        await first
        expect((await second)[0]!.json).toContain('as it was')
      })

      test('a value that JSON cannot express fails for its own caller only', async () => {
        const log = await under.store.create(id)
        const results = await Promise.allSettled([
          append(log, message('a')),
          append(log, toolResult(1n)),
          append(log, message('b')),
        ])
        expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
        expect((await readAll(log)).map(textOf)).toEqual(['a', 'b'])
      })

      test('never lets time go backwards within a log', async () => {
        const log = await under.store.create(id)
        await append(log, message('a'))
        clock -= 60_000
        await append(log, message('b'))
        await log.close()
        const reopened = await reopen()
        await append(reopened, message('c'))
        clock += 60_001
        await append(reopened, message('d'))
        const times = (await readAll(reopened)).map(({ event }) => event.timestamp.slice(11))
        expect(times).toEqual(['00:00:00.000Z', '00:00:00.000Z', '00:00:00.000Z', '00:00:00.001Z'])
      })

      test('is refused with the head when the log has grown since the writer decided', async () => {
        const log = await under.store.create(id)
        await append(log, message('a'))
        expect(await log.append([message('b')], { expectedHead: 0 })).toEqual({ kind: 'head_moved', head: 1 })
        const [second, third] = await Promise.all([
          log.append([message('b')], { expectedHead: 1 }),
          log.append([message('c')], { expectedHead: 1 }),
        ])
        expect(second).toMatchObject({ kind: 'appended' })
        expect(third).toEqual({ kind: 'head_moved', head: 2 })
        expect((await readAll(log)).map(textOf)).toEqual(['a', 'b'])
      })

      test('is refused as fenced under another lease', async () => {
        const log = await under.store.create(id)
        expect(await log.append([message('a')], { epoch: log.epoch + 1 })).toEqual({ kind: 'fenced' })
        expect(await log.append([message('a')], { epoch: log.epoch })).toMatchObject({ kind: 'appended' })
      })
    })

    describe('read', () => {
      test('gives any range, in both orders, as an array would', async () => {
        const log = await under.store.create(id)
        // Sizes mixed so that some reads take many events at once and others not even one.
        const all: StoredEvent[] = []
        for (let i = 0; i < 400; i++) {
          clock += i % 3
          const drafts = [message(`${i}`), toolResult('x'.repeat(i % 57 === 0 ? 200_000 : i * 3))]
          all.push(...(await append(log, ...drafts)))
        }
        await log.close()
        const reopened = await reopen()
        const seq = fc.integer({ min: 0, max: 820 })
        const time = fc.integer({ min: -5, max: 420 }).map((ms) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString())
        const options = fc.record(
          {
            afterSeq: seq,
            beforeSeq: seq,
            order: fc.constantFrom('asc' as const, 'desc' as const),
            types: fc.constantFrom(new Set(['UserMessage']), new Set(['ToolResult', 'Other']), new Set<string>()),
            source: fc.constantFrom('user' as const, 'environment' as const, 'agent' as const),
            since: time,
            until: time,
            maxBytes: fc.integer({ min: 1, max: 300_000 }),
            limit: fc.integer({ min: 1, max: 300 }),
          },
          { requiredKeys: ['limit'] },
        )
        await fc.assert(
          fc.asyncProperty(options, async (options) => {
            expect(seqsOf(await pageThrough(reopened, options))).toEqual(seqsOf(select(all, options)))
          }),
          { numRuns: effort(15, 1000) },
        )
      })

      test('returns no more than the limit, and says where to continue only if something is left', async () => {
        const log = await under.store.create(id)
        await append(log, ...Array.from({ length: 5 }, (_, i) => message(`${i}`)))
        const summary = async (options: ReadOptions) => {
          const { events, scannedTo } = await log.read(options)
          return [seqsOf(events), scannedTo]
        }
        expect(await summary({ limit: 3 })).toEqual([[1, 2, 3], 3])
        expect(await summary({ limit: 3, afterSeq: 3 })).toEqual([[4, 5], undefined])
        expect(await summary({ limit: 5 })).toEqual([[1, 2, 3, 4, 5], undefined])
        expect(await summary({ limit: 2, order: 'desc' })).toEqual([[5, 4], 4])
        expect(await summary({ limit: 2, order: 'desc', beforeSeq: 3 })).toEqual([[2, 1], undefined])
        expect(await summary({ limit: 9, afterSeq: 5 })).toEqual([[], undefined])
        expect(await summary({ limit: 9, afterSeq: 3, beforeSeq: 4 })).toEqual([[], undefined])
      })

      test('sees exactly what is durable while events are appended', async () => {
        const log = await under.store.create(id)
        const reads: Promise<void>[] = []
        const check = async (): Promise<void> => {
          const { head } = log
          const { events } = await log.read({ limit: 1000, order: 'desc' })
          expect(seqsOf(events)).toEqual(Array.from({ length: head }, (_, i) => head - i))
        }
        for (let i = 0; i < 100; i++) {
          const appended = append(log, message(`${i}`), message('and'))
          reads.push(check())
          await appended
          reads.push(check())
        }
        await Promise.all(reads)
      })
    })

    test('finds an event by its id, also among many of the same millisecond', async () => {
      const log = await under.store.create(id)
      for (let i = 0; i < 50; i++) {
        await append(log, ...Array.from({ length: 20 }, (_, j) => message(`${i}.${j}`)))
        if (i % 10 === 9) clock += 7
      }
      await log.close()
      const reopened = await reopen()
      const all = await readAll(reopened)
      for (const stored of all.filter((_, i) => i % 13 === 0)) {
        expect((await reopened.find(stored.event.id))?.seq).toBe(stored.seq)
        expect(uuid7Time(stored.event.id)).toBe(Date.parse(stored.event.timestamp))
      }
      expect(await reopened.find(uuid7(clock))).toBeUndefined()
      expect(await reopened.find(uuid7(clock + 60_000))).toBeUndefined()
      expect(await reopened.find('no id at all')).toBeUndefined()
    })

    test('finds a text in any case wherever an event has it, and not in names, ids, times and images', async () => {
      const log = await under.store.create(id)
      const image = { type: 'image' as const, media_type: 'image/png' as const, data: 'TmVlZGxl' }
      await append(log, message('a Needle in "quotes"\n'))
      await append(log, { ...message('x'), content: [{ type: 'text', text: 'none' }, image] } as EventDraft)
      await append(log, toolResult('hay'), {
        ...toolResult('x'),
        output: { lines: [{ deep: 'needle' }] },
      } as EventDraft)
      await append(log, { ...message('x'), sender: 'NEEDLE Ünder' } as EventDraft)
      const seqsWith = async (q: string, more: Partial<ReadOptions> = {}) =>
        seqsOf((await log.read({ q, limit: 10, ...more })).events)
      expect(await seqsWith('needle')).toEqual([1, 4, 5])
      expect(await seqsWith('NEEDLE', { order: 'desc', limit: 2 })).toEqual([5, 4])
      expect(await seqsWith('needle', { types: new Set(['ToolResult']) })).toEqual([4])
      expect(await seqsWith('in "QUOTES"\n')).toEqual([1])
      expect(await seqsWith('üNDER')).toEqual([5])
      for (const q of ['UserMessage', 'content', '2026', id, 'TmVlZGxl', 'image'])
        expect(await seqsWith(q), q).toEqual([])
      expect(await log.count({ q: 'needle' })).toBe(3)
      expect(await log.count({ q: 'needle', source: 'user' })).toBe(2)
      const short = await log.read({ q: 'ünder', limit: 10, maxBytes: 1 })
      expect([short.events, short.scannedTo], 'a search is bounded like any read').toEqual([[], 1])
    })

    test('counts what a filter lets through', async () => {
      const log = await under.store.create(id)
      expect(await log.count()).toBe(0)
      for (let i = 0; i < 30; i++) {
        await append(log, message('m'), message('m'), toolResult('r'))
        clock += 1000
      }
      expect(await log.count()).toBe(90)
      expect(await log.count({ types: new Set(['ToolResult']) })).toBe(30)
      expect(await log.count({ source: 'user', since: '2026-01-01T00:00:10Z', until: '2026-01-01T00:00:20Z' })).toBe(20)
      expect(await log.count({ since: '2026-01-01T00:00:10Z' })).toBe(60)
      expect(await log.count({ until: '2026-01-01T00:00:20Z' })).toBe(60)
      for (const order of ['asc', 'desc'] as const) {
        const read = async (filter: EventFilter) => (await log.read({ ...filter, order, limit: 100 })).events.length
        expect(await read({ since: '2026-01-01T00:00:29Z' })).toBe(3)
        expect(await read({ until: '2026-01-01T00:00:01Z' })).toBe(3)
      }
    })

    describe('view', () => {
      test('shows what is durable, with or without a writer, and does not take the log over', async () => {
        const log = await under.store.create(id)
        await append(log, message('a'), message('b'))
        await using beside = await under.store.view(id)
        await using alone = await under.restart().view(id)
        await append(log, message('c'))
        for (const view of [beside, alone]) {
          expect(view.head).toBe(2)
          expect((await readAll(view)).map(textOf)).toEqual(['a', 'b'])
        }
        await using later = await under.store.view(id)
        expect((await later.read({ afterSeq: 1, limit: 1 })).events.map(textOf)).toEqual(['b'])
        expect(later.head).toBe(3)
        await append(log, message('d'))
        expect(log.head).toBe(4)
      })

      test('never shows an event before it is durable, or one that arrives during the read', async () => {
        const log = await under.store.create(id)
        const appends = Array.from({ length: 50 }, (_, i) => append(log, message(`${i}`)))
        for (let round = 0; round < 20; round++) {
          await using view = await under.store.view(id)
          expect(view.head).toBeLessThanOrEqual(log.head)
          expect(seqsOf(await readAll(view))).toEqual(Array.from({ length: view.head }, (_, i) => i + 1))
        }
        await Promise.all(appends)
      })

      test('shows all events of a writer that is closing', async () => {
        const log = await under.store.create(id)
        const appended = append(log, message('a'), message('b'))
        const closed = log.close()
        await using view = await under.store.view(id)
        expect((await readAll(view)).map(textOf)).toEqual(['a', 'b'])
        await Promise.all([appended, closed])
      })

      test('says why a log is closed: a deleted conversation is not tried again', async () => {
        const logs = [await under.store.create(id), await under.store.create(crypto.randomUUID())]
        for (const log of logs) await append(log, message('a'))
        await logs[0]!.close('deleted')
        await logs[1]!.close()
        const codeOf = (log: StoredLog) => log.read({ limit: 1 }).catch(({ code }: Problem) => code)
        expect(await Promise.all(logs.map(codeOf))).toEqual(['conversation_deleted', 'unavailable'])
      })

      test('finds no log that was never made, or is deleted; one under which the writer closes says so', async () => {
        await expect(under.store.view(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
        const log = await under.store.create(id)
        await append(log, message('a'))
        await using view = await under.store.view(id)
        await log.close()
        await expect(view.read({ limit: 1 })).rejects.toMatchObject({ code: 'unavailable' })
        await under.store.delete(id)
        await expect(under.store.view(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
      })
    })

    describe('lives and dies:', () => {
      test('an empty log is there after a restart, and ready to be written', async () => {
        await (await under.store.create(id)).close()
        const log = await reopen()
        expect(log.head).toBe(0)
        expect(await log.read({ limit: 1 })).toEqual({ events: [], scannedTo: undefined })
        expect(seqsOf(await append(log, message('first')))).toEqual([1])
      })

      test('a whole log needs no repair', async () => {
        const log = await under.store.create(id)
        await append(log, message('a'), message('b'))
        await log.close()
        expect((await under.restart().open(id)).repaired).toBeUndefined()
      })

      test('an id is created once', async () => {
        await under.store.create(id)
        await expect(under.store.create(id)).rejects.toMatchObject({ code: 'conversation_exists' })
        await expect(under.restart().create(id)).rejects.toMatchObject({ code: 'conversation_exists' })
      })

      test.each(['../../etc', '', 'a/b', '.', 'AAAAAAAA-0000-7000-8000-000000000000'])(
        '%j is not a valid id',
        async (bad) => {
          for (const action of [under.store.create(bad), under.store.open(bad), under.store.delete(bad)]) {
            await expect(action).rejects.toMatchObject({ code: 'conversation_not_found' })
          }
        },
      )

      test('a log that was never created or was deleted is not found', async () => {
        await expect(under.store.open(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
        const log = await under.store.create(id)
        await append(log, message('secret'))
        const late = Promise.allSettled([log.append([message('late')]), log.append([message('later')])])
        await under.store.delete(id)
        await late
        await expect(under.store.open(id)).rejects.toMatchObject({ code: 'conversation_not_found' })
        await expect(log.append([message('x')])).rejects.toMatchObject({ code: 'conversation_deleted' })
        await expect(log.read({ limit: 1 })).rejects.toMatchObject({ code: 'conversation_deleted' })
        await under.store.delete(id)
        expect(await readAll(await under.store.create(id))).toEqual([])
      })

      test('opening a log takes it over from its previous holder', async () => {
        const first = await under.store.create(id)
        const acknowledged = append(first, message('from the first'))
        const { log: second } = await under.store.open(id)
        await acknowledged
        expect(second.epoch).toBeGreaterThan(first.epoch)
        expect(await first.append([message('x')], { epoch: first.epoch })).toEqual({ kind: 'fenced' })
        await append(second, message('from the second'))
        expect((await readAll(second)).map(textOf)).toEqual(['from the first', 'from the second'])
      })

      test('close waits for what was appended, and ends it', async () => {
        const log = await under.store.create(id)
        const appends = Array.from({ length: 50 }, (_, i) => append(log, message(`${i}`)))
        await log.close()
        expect(seqsOf((await Promise.all(appends)).flat())).toEqual(appends.map((_, i) => i + 1))
        await expect(log.append([message('late')])).rejects.toMatchObject({ code: 'unavailable' })
        await expect(log.read({ limit: 1 })).rejects.toMatchObject({ code: 'unavailable' })
        expect((await reopen()).head).toBe(50)
      })
    })
  })
}

/** Everything the options select, call after call, as the seam says to go on. */
async function pageThrough(log: StoredLog, options: ReadOptions): Promise<StoredEvent[]> {
  const all: StoredEvent[] = []
  for (let on: Partial<ReadOptions> | undefined = {}; on !== undefined;) {
    const { events, scannedTo } = await log.read({ ...options, ...on })
    expect(events.length).toBeLessThanOrEqual(options.limit)
    all.push(...events)
    on =
      scannedTo === undefined
        ? undefined
        : options.order === 'desc'
          ? { beforeSeq: scannedTo }
          : { afterSeq: scannedTo }
  }
  return all
}

/** The model: what the options select from an array. */
function select(all: readonly StoredEvent[], options: ReadOptions): StoredEvent[] {
  const { afterSeq = 0, beforeSeq = Infinity, order, types, source, since, until } = options
  const selected = all.filter(
    ({ seq, type, event }: { seq: number; type: string; event: Event }) =>
      seq > afterSeq &&
      seq < beforeSeq &&
      (!types || types.has(type)) &&
      (!source || event.source === source) &&
      (since === undefined || event.timestamp >= since) &&
      (until === undefined || event.timestamp < until),
  )
  return order === 'desc' ? selected.toReversed() : selected
}

/** What every storage promises, whatever it is made of: each one has to pass this suite unchanged. */
import { writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ConversationStorage, Storage, Summary } from '../../src/storage/storage.ts'
import type { UsageQuery } from '../../src/storage/usage.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { append, message, readAll, textOf } from '../events/fixtures.ts'

type Keys = readonly [string, ...string[]]

export type StorageUnderTest = AsyncDisposable & {
  /** As a server does. What an earlier one, now disposed of, has stored is there. */
  open(operatorKeys: Keys): Promise<Storage>
}

const KEYS: Keys = ['key of the operator']
const SECRETS = { llm: { api_key: 'sk-very-secret' }, env: { TOKEN: 'a token' } }
const entryOf = (id: string, keyHash?: string) => ({ id, keyHash })

/** `refusesOtherKeys`: it is not opened if none of the keys decrypts what is stored. */
export function storageContract(
  name: string,
  makeStorage: () => Promise<StorageUnderTest>,
  { refusesOtherKeys = false } = {},
): void {
  describe(`${name} keeps the contract of a storage:`, () => {
    let under: StorageUnderTest
    let storage: Storage
    let id: string
    let own: ConversationStorage

    /** Nothing is closed before: the next process finds what a crash has left, too. */
    const reopen = async (keys: Keys = KEYS) => {
      await storage[Symbol.asyncDispose]()
      storage = await under.open(keys)
      own = storage.conversation(id)
    }
    const make = async (secrets = {}) => {
      await own.reserve()
      return await own.createLog(secrets)
    }

    beforeEach(async () => {
      under = await makeStorage()
      storage = await under.open(KEYS)
      id = uuid7()
      own = storage.conversation(id)
    })
    afterEach(async () => {
      await storage.settled()
      await storage[Symbol.asyncDispose]()
      await under[Symbol.asyncDispose]()
    })

    test('one process at a time opens it', async () => {
      await expect(under.open(KEYS)).rejects.toThrow('in use')
      await reopen()
    })

    describe('a conversation', () => {
      test('that was never made is empty', async () => {
        expect(await storage.ids()).toEqual([])
        expect(await own.exists()).toBe(false)
        expect([await storage.snapshots.read(own.id), await own.callbacks.read(), await own.lastEvent()]).toEqual([
          undefined,
          undefined,
          undefined,
        ])
        expect(await own.readSecrets()).toEqual({})
        expect(await own.commands.entries()).toEqual([])
        expect(await own.isCopying()).toBe(false)
        for (const open of [() => own.openLog(), () => storage.view(id)])
          await expect(open()).rejects.toMatchObject({ code: 'conversation_not_found' })
        await own.remove()
      })

      test('exists from its reservation on, and its id can be reserved once', async () => {
        const before = Date.now()
        await own.reserve()
        expect(await storage.ids()).toEqual([id])
        expect(await own.exists()).toBe(true)
        const createdAt = Date.parse(await own.createdAt())
        // Clocks of file systems are coarse.
        expect(createdAt).toBeGreaterThan(before - 2000)
        expect(createdAt).toBeLessThan(Date.now() + 2000)
        for (const each of [own, storage.conversation(id)])
          await expect(each.reserve()).rejects.toMatchObject({ code: 'conversation_exists' })
      })

      test('is created with its log and its secrets, which the next process finds', async () => {
        const log = await make(SECRETS)
        await append(log, message('hello'))
        await expect(own.createLog({})).rejects.toMatchObject({ code: 'conversation_exists' })
        await reopen()
        expect(await storage.ids()).toEqual([id])
        expect(await own.readSecrets()).toEqual(SECRETS)
        expect((await readAll((await own.openLog()).log)).map(textOf)).toEqual(['hello'])
      })

      test('returns its last event without opening the log, or undefined', async () => {
        const log = await make()
        expect(await own.lastEvent()).toBeUndefined()
        const [, last] = await append(log, message('a'), message('b'))
        await log.close()
        expect(await own.lastEvent()).toMatchObject({ seq: 2, timestamp: last!.event.timestamp })
        expect(await own.readSecrets()).toEqual({})
      })

      test('can begin as a copy, which is marked until its log is there', async () => {
        const source = storage.conversation(uuid7())
        await source.reserve()
        const log = await source.createLog({})
        await append(log, message('one'))
        const [first] = await readAll(log)
        await own.reserve()
        await own.markCopying()
        await reopen()
        expect(await own.isCopying()).toBe(true)
        await own.copyLog(
          (async function* () {
            yield first!.event
          })(),
          () => [message('two')],
        )
        await reopen()
        await using view = await storage.view(id)
        expect((await readAll(view)).map(textOf)).toEqual(['one', 'two'])
      })

      test('that is discarded leaves nothing, and its id can be used again', async () => {
        const log = await make(SECRETS)
        await append(log, message('gone'))
        await own.discard()
        await expect(log.read({ limit: 1 })).rejects.toMatchObject({ code: 'conversation_deleted' })
        expect(await storage.ids()).toEqual([])
        expect(await readAll(await make())).toEqual([])
        expect(await own.readSecrets()).toEqual({})
      })

      test('that is removed leaves nothing, whatever is still being written', async () => {
        const log = await make(SECRETS)
        await own.callbacks.write({ n: 1 })
        await own.commands.write(entryOf(uuid7()), {}, { durable: true })
        await log.close()
        const written = [1, 2, 3].map((n) => storage.snapshots.write(own.id, { n }))
        await own.remove()
        await Promise.all(written)
        expect(await own.exists()).toBe(false)
        await reopen()
        expect(await storage.ids()).toEqual([])
        expect([
          await storage.snapshots.read(own.id),
          await own.callbacks.read(),
          await own.commands.entries(),
        ]).toEqual([undefined, undefined, []])
      })
    })

    describe('a snapshot', () => {
      test('is the newest of those that are written at once, also for others and for the next process', async () => {
        await make()
        await Promise.all(Array.from({ length: 50 }, (_, n) => storage.snapshots.write(id, { n })))
        expect(await storage.snapshots.read(own.id)).toEqual({ n: 49 })
        const last = storage.snapshots.write(own.id, { n: 50, text: '\ud83d\ude00 "quoted"\n', none: null })
        expect(await storage.snapshots.read(own.id)).toMatchObject({ n: 50 })
        await last
        await reopen()
        expect(await storage.snapshots.read(own.id)).toEqual({ n: 50, text: '\ud83d\ude00 "quoted"\n', none: null })
      })

      test('that cannot be written rejects, and does not prevent the next one', async () => {
        await expect(storage.snapshots.write(own.id, { n: 1 })).rejects.toThrow()
        await make()
        await storage.snapshots.write(own.id, { n: 2 })
        await storage.settled()
        expect(await storage.snapshots.read(own.id)).toEqual({ n: 2 })
      })
    })

    describe('secrets', () => {
      test('are replaced as a whole', async () => {
        await make(SECRETS)
        await own.writeSecrets({ env: { OTHER: 'value' } })
        await reopen()
        expect(await own.readSecrets()).toEqual({ env: { OTHER: 'value' } })
      })

      test('are read under another key of the operator once that was opened together with the old one', async () => {
        await make(SECRETS)
        await reopen(['new key', ...KEYS])
        expect(storage.keys.locked).toBe(0)
        await reopen(['new key'])
        expect(await own.readSecrets()).toEqual(SECRETS)
      })

      const refused = async () => {
        await make(SECRETS)
        await storage[Symbol.asyncDispose]()
        await expect(under.open(['another key'])).rejects.toThrow(/another secret key.*OPENHANDS_SECRET_KEY/)
        storage = await under.open(KEYS)
        expect(storage.keys.locked).toBe(0)
        expect(await storage.conversation(id).readSecrets()).toEqual(SECRETS)
      }
      const keptAside = async () => {
        await make(SECRETS)
        await reopen(['another key'])
        expect(storage.keys.locked).toBe(1)
        await expect(own.readSecrets()).rejects.toMatchObject({ code: 'storage_failed' })
        await own.writeSecrets({ env: { TOKEN: 'sent again' } })
        expect(await own.readSecrets()).toEqual({ env: { TOKEN: 'sent again' } })
      }
      if (refusesOtherKeys) test('that no key opens prevent the start, which says so and changes nothing', refused)
      else test('that no key opens are reported, and kept aside by the next write', keptAside)

      test('are opened for no other conversation, as is what is sealed for one', async () => {
        const sealed = own.sealer.seal(Buffer.from('content'))
        expect(sealed.includes('content')).toBe(false)
        expect(storage.conversation(uuid7()).sealer.unseal(sealed)).toBeUndefined()
        await reopen()
        expect(own.sealer.unseal(sealed)?.toString()).toBe('content')
      })
    })

    test('callbacks are one value, replaced as a whole; one that is set aside is not there any more', async () => {
      await make()
      await own.callbacks.write({ n: 1 })
      await own.callbacks.write({ n: 2, list: ['ü'] })
      await reopen()
      expect(await own.callbacks.read()).toEqual({ n: 2, list: ['ü'] })
      expect(await own.callbacks.setAside()).not.toBe('')
      expect(await own.callbacks.read()).toBeUndefined()
      await own.callbacks.write({ n: 3 })
      expect(await own.callbacks.read()).toEqual({ n: 3 })
    })

    test('records of commands are listed in the order they were made, and go with their output', async () => {
      await make()
      const { commands } = own
      const [first, second, third] = [entryOf(uuid7()), entryOf(uuid7(), '0123456789abcdef'), entryOf(uuid7())]
      for (const entry of [third, first, second])
        await commands.write(entry, { n: 0, of: entry.id }, { durable: entry.keyHash !== undefined })
      await commands.write(second, { n: 1, of: second.id }, { durable: true })
      await writeFile(commands.outputPath(first.id, 'stdout'), 'four')
      await writeFile(commands.outputPath(first.id, 'stderr'), 'three')
      await reopen()
      const now = own.commands
      expect(await now.entries()).toEqual([first, second, third])
      expect(await now.read(second)).toEqual({ n: 1, of: second.id })
      expect([await now.outputBytes([first.id, third.id]), await now.outputBytes([third.id])]).toEqual([9, 0])
      await now.remove(first)
      expect(await now.entries()).toEqual([second, third])
      expect(await now.outputBytes([first.id])).toBe(0)
      expect(await now.read(first)).toBeUndefined()
    })

    test.each(['active', 'due'] as const)('marks of those that are %s stay until they are cleared', async (kind) => {
      const [one, other] = [uuid7(), uuid7()]
      await storage[kind].clear(one)
      for (const each of [one, one, other]) await storage[kind].set(each)
      await reopen()
      expect((await storage[kind].ids()).toSorted()).toEqual([one, other])
      await storage[kind].clear(one)
      expect(await storage[kind].ids()).toEqual([other])
      expect(await storage[kind === 'active' ? 'due' : 'active'].ids()).toEqual([])
    })

    test('deletions are kept forever, and the keys of their creates for as long as they count', async () => {
      const keyOf = (of: string, ms: number) => ({
        key: `key of ${of}`,
        bodyHash: 'hash',
        id: of,
        at: new Date(ms).toISOString(),
      })
      const [plain, old, recent] = [uuid7(), uuid7(), uuid7()]
      const now = Date.now()
      await storage.deletions.mark(plain)
      await storage.deletions.mark(old, keyOf(old, now - 2000))
      await storage.deletions.mark(recent, keyOf(recent, now))
      await reopen()
      expect((await storage.deletions.ids()).toSorted()).toEqual([plain, old, recent])
      expect([await storage.deletions.has(old), await storage.deletions.has(id)]).toEqual([true, false])
      expect(await storage.deletions.keys(now - 1000)).toEqual([keyOf(recent, now)])
      expect(await storage.deletions.keys(0), 'the others are removed').toEqual([keyOf(recent, now)])
      expect(await storage.deletions.has(old)).toBe(true)
    })

    test.each(['apiKeys', 'logins', 'profiles'] as const)(
      '%s change only from the version that they were read with, and are listed as they were made',
      async (table) => {
        const { [table]: apiKeys } = storage
        const [one, other] = [uuid7(), uuid7()]
        const first = await apiKeys.read()
        expect(first.keys).toEqual([])
        const second = await apiKeys.change(first.version, other, { name: 'other' })
        expect(await apiKeys.change(first.version, one, { name: 'from an old version' })).toBeUndefined()
        const racing = [one, one].map((id) => apiKeys.change(second!, id, { name: 'raced' }))
        const raced = await Promise.all(racing)
        const third = raced.find((version) => version !== undefined)
        expect([third! > second!, raced.includes(undefined)]).toEqual([true, true])
        const fourth = await apiKeys.change(third!, one, { name: 'ü', scopes: ['read'] })
        await apiKeys.noteUses(
          new Map([
            [other, '2026-01-31T12:00:00.000Z'],
            [uuid7(), '2026-01-31T12:00:00.000Z'],
          ]),
        )
        await reopen()
        const { version, keys } = await storage[table].read()
        expect([version, await storage[table].version()]).toEqual([fourth, fourth])
        expect(keys).toEqual([
          { id: other, value: { name: 'other' }, usedAt: '2026-01-31T12:00:00.000Z' },
          { id: one, value: { name: 'ü', scopes: ['read'] }, usedAt: undefined },
        ])
        await storage[table].change(version, other, undefined)
        expect((await storage[table].read()).keys.map(({ id }) => id)).toEqual([one])
      },
    )

    test('the search index finds events by beginnings of words, the newest first, and forgets what does not hold', async () => {
      const other = uuid7()
      for (const each of [id, other]) {
        const made = storage.conversation(each)
        await made.reserve()
        await append(await made.createLog({}), message('one'))
      }
      const part = { conversationId: id, after: 0, through: 4, removed: [] }
      const events = [1, 2, 3].map((seq) => ({ seq, at: 1_000_000 + seq * 1000, words: `größe word${seq} 漢` }))
      await storage.search.add([
        { ...part, events },
        {
          conversationId: other,
          after: 0,
          through: 1,
          removed: [],
          events: [{ seq: 1, at: 1_002_500, words: 'word' }],
        },
      ])
      const find = async (words: readonly string[], more: object = {}) =>
        (await storage.search.find({ words, limit: 10, ...more })).map((one) => [one.conversationId, one.seq])
      expect(await find(['wor'])).toEqual([
        [id, 3],
        [other, 1],
        [id, 2],
        [id, 1],
      ])
      expect(await find(['größ', 'word2'])).toEqual([[id, 2]])
      expect(await find(['wor'], { ids: [other] })).toEqual([[other, 1]])
      const [first] = await storage.search.find({ words: ['wor'], limit: 1 })
      expect(await find(['wor'], { after: first?.place, limit: 2 })).toEqual([
        [other, 1],
        [id, 2],
      ])

      // Nothing is added twice, or after a gap.
      await expect(storage.search.add([{ ...part, events }])).rejects.toThrow('other heads')
      await expect(storage.search.add([{ ...part, after: 5, through: 6, events }])).rejects.toThrow('other heads')
      const removed = [{ afterSeq: 1, beforeSeq: 3 }]
      const early = {
        conversationId: id,
        after: 4,
        through: 5,
        removed: [],
        events: [{ seq: 5, at: 9e6, words: 'gone' }],
      }
      const later = [...removed, { afterSeq: 4, beforeSeq: 6 }]
      // What is added and removed by one call is not found, either.
      await storage.search.add([early, { conversationId: id, after: 5, through: 6, removed: later, events: [] }])
      expect(await find(['gone'])).toEqual([])
      expect(await find(['größe'])).toEqual([
        [id, 3],
        [id, 1],
      ])
      await reopen()
      expect(await storage.search.heads()).toEqual(
        new Map([
          [id, 6],
          [other, 1],
        ]),
      )
      await storage.search.forget([id])
      expect(await find(['wor'])).toEqual([[other, 1]])
      expect([...(await storage.search.heads()).keys()]).toEqual([other])
    })

    test('API keys of several writers that retry are all stored', async () => {
      const ids = Array.from({ length: 8 }, () => uuid7())
      const store = async (id: string) => {
        while ((await storage.apiKeys.change(await storage.apiKeys.version(), id, {})) === undefined);
      }
      await Promise.all(ids.map(store))
      expect((await storage.apiKeys.read()).keys.map((key) => key.id).toSorted()).toEqual(ids)
    })

    test('a shared workdir is left by the last of those that are there', async () => {
      const { sharedWorkdirs: shared } = storage
      const [guest, gone] = [storage.conversation(uuid7()), uuid7()]
      for (const each of [own, guest]) await each.reserve()
      expect(await shared.isShared('/work/a')).toBe(false)
      expect(await shared.leave('/work/never shared', id)).toBe(true)
      await shared.add('/work/a', [id])
      await shared.add('/work/a', [guest.id, gone])
      await reopen()
      const now = storage.sharedWorkdirs
      expect([await now.isShared('/work/a'), await now.isShared('/work')]).toEqual([true, false])
      expect([await now.has('/work/a', id), await now.has('/work/b', id)]).toEqual([true, false])
      await now.move('/work/a', '/moved/a')
      for (let again = 0; again < 2; again++) await now.move('/work/a', '/elsewhere/a')
      expect([await now.has('/work/a', id), await now.has('/moved/a', guest.id)]).toEqual([false, true])
      expect(await now.isShared('/elsewhere/a')).toBe(false)
      await now.move('/moved/a', '/work/a')
      expect(await now.leave('/work/a', id)).toBe(false)
      expect(await now.has('/work/a', id)).toBe(false)
      expect(await now.leave('/work/a', guest.id)).toBe(true)
      expect(await now.isShared('/work/a')).toBe(false)
    })

    test('the order of the firehose stays, has each event of each log once, and continues after the next open', async () => {
      const [one, other] = [uuid7(), uuid7()]
      const of = (conversationId: string, ...seqs: number[]) => seqs.map((seq) => ({ conversationId, seq }))
      const first = await storage.firehose.open(() => {})
      expect([first.last, await first.read(0, 10)]).toEqual([0, []])
      await first.add([
        { conversationId: one, head: 2 },
        { conversationId: other, head: 1 },
      ])
      await first.add([
        { conversationId: one, head: 1 },
        { conversationId: one, head: 3, isExact: true },
      ])
      await first.sync()
      const all = await first.read(0, 10)
      expect(all).toMatchObject([...of(one, 1, 2), ...of(other, 1), ...of(one, 3)])
      expect(all.map(({ position }) => position)).toEqual(all.map(({ position }) => position).toSorted((a, b) => a - b))
      await first[Symbol.asyncDispose]()
      await reopen()
      await using order = await storage.firehose.open(() => {})
      expect([order.epoch, order.last]).toEqual([first.epoch, all.at(-1)!.position])
      expect(await order.read(all[0]!.position, 2)).toEqual(all.slice(1, 3))
      // A log that was restored from an older copy.
      await order.add([
        { conversationId: one, head: 1, isExact: true },
        { conversationId: one, head: 2 },
      ])
      await order.keepOnly([other])
      await order.add([
        { conversationId: one, head: 1 },
        { conversationId: other, head: 2 },
      ])
      expect(await order.read(all.at(-1)!.position, 10)).toMatchObject([...of(one, 2, 1), ...of(other, 2)])
    })

    describe('a summary', () => {
      const summaryOf = (of: string, fields: Partial<Summary> = {}): Summary => ({
        id: of,
        status: 'idle',
        lastSeq: 1,
        createdAt: 1,
        updatedAt: 2,
        title: 'T',
        userId: undefined,
        profile: undefined,
        labels: ['urgent'],
        fields: { ticket: '17' },
        preview: 'p',
        lastWords: 'done',
        model: 'gpt-5',
        costUsd: 0.5,
        isArchived: true,
        waiting: 2,
        waitsSince: 3,
        deadline: 4,
        idempotency: { key: 'k', bodyHash: 'h' },
        ...fields,
      })
      const current = async (...ids: string[]) => {
        const noted = await storage.summaries.read()
        return await noted.current(ids, new AbortController().signal)
      }

      test('counts for the next process as long as the log is the same', async () => {
        const ids = [id, uuid7(), uuid7()]
        for (const each of ids) {
          await storage.conversation(each).reserve()
          const log = await storage.conversation(each).createLog({})
          await append(log, message('a'))
          await log.close()
        }
        storage.summaries.noteFor(ids[0]!)(summaryOf(ids[0]!, { title: 'former' }))
        for (const each of ids) storage.summaries.noteFor(each)(summaryOf(each))
        await storage.settled()
        await reopen()
        const { log } = await storage.conversation(ids[1]!).openLog()
        await append(log, message('b'))
        expect(await current(...ids, uuid7())).toEqual([summaryOf(ids[0]!), undefined, summaryOf(ids[2]!), undefined])
      })

      test('of what is forgotten, or gone, is not there', async () => {
        const gone = uuid7()
        for (const each of [id, gone]) {
          await storage.conversation(each).reserve()
          await (await storage.conversation(each).createLog({})).close()
          storage.summaries.noteFor(each)(summaryOf(each))
        }
        storage.summaries.noteFor(uuid7())(summaryOf(uuid7()))
        await storage.summaries.forget(id)
        await storage.summaries.tidy((each) => each !== gone)
        await storage.settled()
        await reopen()
        expect(await current(id, gone)).toEqual([undefined, undefined])
      })
    })

    describe('the table of usage', () => {
      const answer = (seq: number, at: number, costUsd: number | undefined, model = 'a') => ({
        seq,
        at,
        model,
        costUsd,
        inputTokens: 1e12,
        outputTokens: 1,
        cachedTokens: 2,
        cacheWriteTokens: 3,
      })
      const sums = async (query: Partial<UsageQuery> = {}) =>
        (await storage.usage.sum({ edges: [0, 100, 200], by: undefined, only: {}, limit: 10, ...query })).map((row) => [
          row.bucket,
          row.group,
          row.answers,
          row.costUsd,
        ])
      const [one, two] = [uuid7(), uuid7()]
      const fill = async () => {
        const labels = ['x', 'y']
        const first = [answer(2, 10, 0.5), answer(4, 99, undefined), answer(6, 100, 0.25, 'b')]
        await storage.usage.add([
          { id: one, userId: 'ada', labels, throughSeq: 6, answers: first },
          {
            id: two,
            userId: undefined,
            labels: [],
            throughSeq: 3,
            answers: [answer(3, 100, 2, 'c'), answer(2, 200, 9)],
          },
        ])
      }

      test('sums by time and by what is asked for, and counts nothing twice', async () => {
        expect([...(await storage.usage.counted())]).toEqual([])
        expect(await sums()).toEqual([])
        await fill()
        await fill()
        await reopen()
        expect(new Map(await storage.usage.counted())).toEqual(new Map([[one, 6], [two, 3]])) // prettier-ignore
        expect(await sums()).toEqual([[0, '', 2, 0.5], [1, '', 2, 2.25]]) // prettier-ignore
        expect(await sums({ edges: [0, 100, 200, 300] })).toHaveLength(3)
        expect(await storage.usage.sum({ edges: [0, 100], by: 'model', only: {}, limit: 1 })).toEqual([
          {
            bucket: 0,
            group: 'a',
            answers: 2,
            inputTokens: 2e12,
            outputTokens: 2,
            cachedTokens: 4,
            cacheWriteTokens: 6,
            costUsd: 0.5,
            unpriced: 1,
          },
        ])
        const edges = [0, 200]
        expect(await sums({ edges, by: 'model' })).toEqual([[0, 'c', 1, 2], [0, 'a', 2, 0.5], [0, 'b', 1, 0.25]]) // prettier-ignore
        expect(await sums({ edges, by: 'model', limit: 1 })).toEqual([[0, 'c', 1, 2], [0, undefined, 3, 0.75]]) // prettier-ignore
        expect(await sums({ edges, by: 'user_id' })).toEqual([[0, '', 1, 2], [0, 'ada', 3, 0.75]]) // prettier-ignore
        expect(await sums({ edges, by: 'label' })).toEqual([[0, '', 1, 2], [0, 'x', 3, 0.75], [0, 'y', 3, 0.75]]) // prettier-ignore
        expect(await sums({ edges, by: 'conversation' })).toEqual([[0, two, 1, 2], [0, one, 3, 0.75]]) // prettier-ignore
      })

      test('sums only what is asked for, as the conversations are now', async () => {
        await fill()
        await storage.usage.add([{ id: two, userId: 'bob', labels: ['z'], throughSeq: 4, answers: [] }])
        const edges = [0, 200]
        expect(await sums({ edges, by: 'label', only: { userId: 'bob' } })).toEqual([[0, 'z', 1, 2]])
        expect(await sums({ edges, only: { conversations: [one] } })).toEqual([[0, '', 3, 0.75]])
        for (const only of [{ conversations: [] }, { conversations: [one], userId: 'bob' }, { userId: "' or 1 --" }])
          expect(await sums({ edges, only })).toEqual([])
      })
    })
  })
}

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AssistantDelta } from '../../src/contract/events/transient-event.ts'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { Problem } from '../../src/contract/problem.ts'
import { EventLog } from '../../src/events/event-log.ts'
import type { AppendOutcome, StoredLog } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { sseFrame, sseFrames } from '../../src/events/sse-frame.ts'
import type { TransientRecord } from '../../src/events/transient-record.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import type { SharedLog } from './fixtures.ts'
import { until } from '../support/until.ts'
import {
  answer,
  delta,
  message,
  seqsOf,
  sharedLog,
  tempDirectory,
  textOf,
  reportedLate,
  toolResult,
} from './fixtures.ts'

let shared: SharedLog
let log: EventLog

beforeEach(async () => {
  shared = await sharedLog()
  log = shared.log
})
afterEach(() => shared[Symbol.asyncDispose]())

describe('An appended event', () => {
  test('is durable before subscribers receive it, and all have received it when the caller continues', async () => {
    const heard: string[] = []
    log.subscribe({
      onEvents: (events) => heard.push(`${seqsOf(events).join()} at head ${log.head}`),
    })
    await log.append([message('a'), message('b')]).then(() => heard.push('caller'))
    await log.append([message('c')])
    expect(heard).toEqual(['1,2 at head 2', 'caller', '3 at head 3'])
  })

  test('is published in the order of the calls, whatever the order in which the promises of the store settle', async () => {
    await using directory = await tempDirectory()
    const stored = await createJsonlStore({ directory: directory.path }).create(uuid7())
    const late = new EventLog({
      log: reportedLate(stored, (call) => (call === 0 ? 20 : 0)),
      onListenerError: () => undefined,
    })
    const shown: string[] = []
    late.subscribe({ onEvents: (events) => shown.push(...events.map(textOf)) })
    await Promise.all([late.append([message('first')]), late.append([message('second')])])
    expect(shown).toEqual(['first', 'second'])
    await late.close('closing')
  })

  test('that is refused does not wait for those before it, and those after it do', async () => {
    const stored = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let count = 0
    await log.guardWith(async (append) => {
      await stored[count++]!.promise
      return await append()
    })
    const shown: string[] = []
    log.subscribe({ onEvents: (events) => shown.push(...events.map(textOf)) })
    const [first, refused, last] = ['first', 'refused', 'last'].map((text) => log.append([message(text)]))
    stored[1]!.reject(new Error('not now'))
    await expect(refused).rejects.toThrow('not now')
    stored[2]!.resolve()
    await until('the append of the last one', () => Promise.resolve(log.head === 1))
    expect(shown).toEqual([])
    stored[0]!.resolve()
    await Promise.all([first, last])
    expect(shown).toEqual(['first', 'last'])
  })

  test('waits for a removal of the log, and is stored if that fails', async () => {
    const removals = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const failing = log.endAt(log.head, () => removals[0]!.promise)
    const appends = ['first', 'second'].map((text) => log.append([message(text)]))
    removals[0]!.reject(new Error('the disk is full'))
    await expect(failing).rejects.toThrow('the disk is full')
    expect((await Promise.all(appends)).flat().map(textOf)).toEqual(['first', 'second'])
    const removing = log.endAt(log.head, () => removals[1]!.promise)
    const late = log.append([message('late')])
    removals[1]!.resolve()
    await removing
    await expect(late).rejects.toMatchObject({ code: 'conversation_deleted' })
  })

  test('waits for the guard, keeps its place meanwhile, and fails with it', async () => {
    await using directory = await tempDirectory()
    const stored = await createJsonlStore({ directory: directory.path }).create(uuid7())
    const before = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let calls = 0
    const guarded = new EventLog({
      log: stored,
      onListenerError: () => undefined,
    })
    await guarded.guardWith((append) => before[calls++ < 2 ? 0 : 1]!.promise.then(append))
    const shown: string[] = []
    guarded.subscribe({ onEvents: (events) => shown.push(...events.map(textOf)) })
    const both = [guarded.append([message('first')]), guarded.append([message('second')])]
    const refused = guarded.append([message('third')])
    before[1]!.reject(new Error('not now'))
    expect(guarded.head).toBe(0)
    before[0]!.resolve()
    await Promise.all(both)
    await expect(refused).rejects.toThrow('not now')
    expect(shown).toEqual(['first', 'second'])
    expect(guarded.failed).toBe(false)
    await guarded.close('closing')
  })

  test('that could not be stored is not published, and the next ones are', async () => {
    const shown: string[] = []
    log.subscribe({ onEvents: (events) => shown.push(...events.map(textOf)) })
    const bad = log.append([toolResult(1n)])
    const good = log.append([message('good')])
    await expect(bad).rejects.toThrow(TypeError)
    await good
    expect(shown).toEqual(['good'])
    expect(log.failed).toBe(false)
  })

  test('of a log that was taken over, or whose file was deleted, fails it', async () => {
    const { log: other } = await createJsonlStore({ directory: shared.directory }).open(shared.id)
    await other.close()
    await rm(join(shared.directory, shared.id, 'events.jsonl'))
    await expect(log.append([message('a')])).rejects.toMatchObject({ code: 'storage_failed' })
    expect(log.failed).toBe(true)
  })
})

describe('A log fails', () => {
  type LogFailure = Awaited<EventLog['whenFailed']>
  const problem = (code: ProblemCode) => new Problem(code, 'a test')

  test.each<[string, () => Promise<AppendOutcome>, LogFailure | undefined, ProblemCode]>([
    ['if another writer has taken it over', async () => ({ kind: 'fenced' }), 'taken_over', 'storage_failed'],
    [
      'if it has events of another writer',
      async () => ({ kind: 'head_moved', head: 9 }),
      'taken_over',
      'storage_failed',
    ],
    ['if nobody knows what was stored', () => Promise.reject(problem('storage_failed')), 'uncertain', 'storage_failed'],
    ['not, if nothing was stored', () => Promise.reject(problem('storage_full')), undefined, 'storage_full'],
    ['not, if it is closed', () => Promise.reject(problem('unavailable')), undefined, 'unavailable'],
  ])('%s', async (_what, append, failure, code) => {
    const stored = { conversationId: 'c', epoch: 7, head: 0, append } as unknown as StoredLog
    const failing = new EventLog({ log: stored, onListenerError: () => undefined })
    let seen: LogFailure | undefined
    void failing.whenFailed.then((why) => (seen = why))
    await expect(failing.append([message('a')])).rejects.toMatchObject({ code })
    expect([failing.failed, seen]).toEqual([failure !== undefined, failure])
  })

  test('if events that were acknowledged are gone', async () => {
    const stored = { conversationId: 'c', head: 0, whenLost: Promise.resolve() } as unknown as StoredLog
    const failing = new EventLog({ log: stored, onListenerError: () => undefined })
    expect(await failing.whenFailed).toBe('lost')
    expect(failing.failed).toBe(true)
  })

  test('not by its end: of that its store learns only that it was deleted', async () => {
    const seen: unknown[] = []
    for (const end of ['closing', 'deleted'] as const) {
      const stored = { conversationId: 'c', head: 0, close: async (why: unknown) => void seen.push(why) }
      const own = new EventLog({ log: stored as unknown as StoredLog, onListenerError: () => undefined })
      await Promise.all([own.close(end), own.close('closing')])
      expect([own.ended, own.failed]).toEqual([end, false])
    }
    expect(seen).toEqual([undefined, 'deleted'])
  })

  test('never by itself: it tells its store the epoch and the purpose of each append', async () => {
    const seen: unknown[] = []
    const append = async (_: unknown, options: unknown) => (seen.push(options), { kind: 'appended', events: [] })
    const stored = { conversationId: 'c', epoch: 7, head: 0, append } as unknown as StoredLog
    const own = new EventLog({ log: stored, onListenerError: () => undefined })
    await own.append([])
    await own.append([], { isForClient: true })
    expect(seen).toEqual([{ epoch: 7 }, { epoch: 7, isForClient: true }])
    expect(own.failed).toBe(false)
  })
})

describe('A subscriber', () => {
  test('that throws does not affect others', async () => {
    const shown: unknown[] = []
    const oops = () => {
      throw new Error('oops')
    }
    log.subscribe({ onEvents: oops, onTransient: oops, onClose: oops })
    log.subscribe({
      onEvents: (events) => shown.push(...events.map(textOf)),
      onTransient: ({ type }) => shown.push(type),
    })
    await log.append([message('a')])
    log.publish(delta(uuid7(), 0, 'x'))
    expect(shown).toEqual(['a', 'AssistantDelta'])
    await log.close('closing')
    expect(shared.errors).toHaveLength(3)
  })

  test('receives nothing more once it has unsubscribed, even from within', async () => {
    const shown: string[] = []
    const unsubscribe = log.subscribe({
      onEvents: (events) => {
        shown.push(...events.map(textOf))
        unsubscribe()
        second()
      },
    })
    const second = log.subscribe({ onEvents: () => shown.push('never') })
    await log.append([message('a')])
    await log.append([message('b')])
    expect(shown).toEqual(['a'])
    expect(log.subscriberCount).toBe(0)
  })

  test('receives the reason of the end once, after everything that was appended', async () => {
    const heard: string[] = []
    log.subscribe({ onEvents: (events) => heard.push(...events.map(textOf)), onClose: (end) => heard.push(end) })
    const appended = log.append([message('last words')])
    await Promise.all([log.close('deleted'), log.close('closing')])
    await appended
    expect(heard).toEqual(['last words', 'deleted'])
    expect([log.ended, log.subscriberCount]).toEqual(['deleted', 0])
    log.subscribe({ onEvents: () => heard.push('never'), onClose: (end) => heard.push(`late: ${end}`) })
    log.publish(delta(uuid7(), 0, 'x'))
    expect(heard.at(-1)).toBe('late: deleted')
  })
})

describe('A transient event', () => {
  test('carries its conversation and the time, and no seq; it is serialised once for all', () => {
    const records: TransientRecord[] = []
    log.subscribe({ onEvents: () => undefined, onTransient: (record) => records.push(record) })
    log.subscribe({ onEvents: () => undefined, onTransient: (record) => records.push(record) })
    const id = uuid7()
    log.publish(delta(id, 0, 'Hi'))
    expect(records[0]).toBe(records[1])
    expect(JSON.parse(records[0]!.json)).toEqual({
      type: 'AssistantDelta',
      conversation_id: shared.id,
      timestamp: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      message_id: id,
      index: 0,
      offset: 0,
      text_delta: 'Hi',
    })
  })
})

describe('The message so far', () => {
  const soFar = () => log.messagesSoFar().map(({ event }) => event as AssistantDelta)

  test('is one delta for each part, in the order they began', () => {
    const id = uuid7()
    log.publish({ type: 'AssistantDelta', message_id: id, index: 0, offset: 0, reasoning_delta: 'Hm' })
    log.publish(delta(id, 0, 'Hel'))
    log.publish({ type: 'AssistantDelta', message_id: id, index: 1, offset: 0, tool_input_delta: '{"a"' })
    log.publish(delta(id, 3, 'lo'))
    log.publish({ type: 'AssistantDelta', message_id: id, index: 1, offset: 4, tool_input_delta: ':1}', run_id: id })
    expect(soFar()).toMatchObject([
      { message_id: id, index: 0, offset: 0, reasoning_delta: 'Hm' },
      { message_id: id, index: 0, offset: 0, text_delta: 'Hello' },
      { message_id: id, index: 1, offset: 0, tool_input_delta: '{"a":1}', run_id: id },
    ])
  })

  test('is forgotten with the durable message, or when its attempt is abandoned; others stay', async () => {
    const [stored, givenUp, other] = [uuid7(), uuid7(), uuid7()]
    for (const id of [stored, givenUp, other]) log.publish(delta(id, 0, id))
    log.publish({ type: 'AssistantAborted', message_id: givenUp })
    expect(soFar().map(({ message_id }) => message_id)).toEqual([stored, other])
    const seen: string[][] = []
    log.subscribe({ onEvents: () => seen.push(soFar().map(({ message_id }) => message_id)) })
    await log.append([answer(stored, stored)])
    expect(seen).toEqual([[other]])
  })

  test('is gone when the log is closed, and nothing is added to it then', async () => {
    log.publish(delta('one', 0, 'a'))
    expect(log.messagesSoFar()).toHaveLength(1)
    await log.close('closing')
    log.publish(delta('one', 1, 'b'))
    expect(log.messagesSoFar()).toEqual([])
  })

  test('is bounded: of a long one the end is kept, and later deltas continue it', () => {
    const id = uuid7()
    const chunk = 'abcdefghij'.repeat(1000)
    for (let i = 0; i < 250; i++) log.publish(delta(id, i * chunk.length, chunk))
    const [kept] = soFar()
    expect(kept!.text_delta!.length).toBeLessThanOrEqual(256 * 1024)
    expect(kept!.text_delta!.length).toBeGreaterThan(100 * 1024)
    expect(kept!.offset + kept!.text_delta!.length).toBe(250 * chunk.length)
    expect(kept!.text_delta!.endsWith(chunk)).toBe(true)
    for (let i = 0; i < 1000; i++) log.publish(delta(uuid7(), 0, 'x'))
    expect(soFar().length).toBeLessThanOrEqual(64)
  })
})

describe('The frame of a record', () => {
  test('has an id when the event is durable, and is made once', async () => {
    const [stored] = await log.append([message('a\r\nb\u2028')])
    expect(sseFrame(stored!).toString()).toBe(`id: 1\nevent: UserMessage\ndata: ${stored!.json}\n\n`)
    expect(sseFrame(stored!)).toBe(sseFrame(stored!))
    expect(sseFrames([stored!])).toBe(sseFrame(stored!))
  })

  test('has no id when it is transient; a batch is its frames, one after the other', async () => {
    const records: TransientRecord[] = []
    log.subscribe({ onEvents: () => undefined, onTransient: (record) => records.push(record) })
    log.publish(delta(uuid7(), 0, 'x'))
    const [stored] = await log.append([message('a')])
    expect(sseFrame(records[0]!).toString()).toBe(`event: AssistantDelta\ndata: ${records[0]!.json}\n\n`)
    expect(sseFrames([records[0]!, stored!])).toEqual(Buffer.concat([sseFrame(records[0]!), sseFrame(stored!)]))
  })
})

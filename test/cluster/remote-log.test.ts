/** What readers of another instance get while owners come and go: over the bytes that an owner sends, from a real log. */
import { Readable } from 'node:stream'
import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readOwnerStream } from '../../src/cluster/owner-stream.ts'
import type { RemoteLogOptions } from '../../src/cluster/remote-log.ts'
import { RemoteLog } from '../../src/cluster/remote-log.ts'
import { Problem } from '../../src/contract/problem.ts'
import { WaitingHooks } from '../../src/conversations/client-hooks/waiting-hooks.ts'
import { follow } from '../../src/events/event-feed.ts'
import type { FeedBatch } from '../../src/events/feed-buffer.ts'
import type { PublishedRecord } from '../../src/events/sse-frame.ts'
import { sseFrames } from '../../src/events/sse-frame.ts'
import type { SharedLog } from '../events/fixtures.ts'
import { answer, delta, message, seqsOf, sharedLog } from '../events/fixtures.ts'
import { effort } from '../support/patience.ts'
import { createRandom } from '../support/random.ts'

const CLIENT = 'policy'

let shared: SharedLog
let hooks: WaitingHooks
let ended: AbortController
let stopping: AbortController
/** The number of the present owner; undefined while there is none. */
let owner: number | undefined
/** How many events before the cursor the owner sends again, or, if negative, leaves out. */
let repeats: number
let cut: () => void

beforeEach(async () => {
  shared = await sharedLog()
  hooks = new WaitingHooks(shared.id)
  ended = new AbortController()
  stopping = new AbortController()
  owner = 1
  repeats = 0
  cut = () => {}
})
afterEach(async () => {
  ended.abort()
  cut()
  await shared[Symbol.asyncDispose]()
  expect(shared.errors).toEqual([])
})

async function connect(afterSeq: number | undefined) {
  const { log } = shared
  if (owner === undefined) throw new Problem('owner_lost', 'Nobody has it.')
  const from = Math.min(Math.max((afterSeq ?? log.head) - repeats, 0), log.head)
  const leaving = new AbortController()
  const feed = follow(log, {
    afterSeq: from,
    deltas: true,
    requests: hooks.requestsTo(CLIENT),
    signal: leaving.signal,
  })
  // As the route does: what happens after the connection is received.
  const first = feed.next()
  async function* frames() {
    for (let { value, done } = await first; !done && value; { value, done } = await feed.next())
      if (value.records.length > 0) yield sseFrames(value.records)
  }
  const body = Readable.from(frames())
  cut = () => {
    leaving.abort()
    body.destroy(new Error('The connection was cut.'))
  }
  return { instance: owner, batches: readOwnerStream(body) }
}

const view = async () => {
  const { log } = shared
  const { head } = log
  const read: typeof log.read = (options) => log.read({ ...options, beforeSeq: options.beforeSeq ?? head + 1 })
  return { head, read, [Symbol.asyncDispose]: () => Promise.resolve() }
}

async function open(options: Partial<RemoteLogOptions> = {}): Promise<RemoteLog> {
  const signals = { signal: ended.signal, stopping: stopping.signal }
  return await RemoteLog.open({
    conversationId: shared.id,
    views: { view },
    connect,
    ...signals,
    onLost: () => {},
    ...options,
  })
}

async function readFrom(remote: RemoteLog, afterSeq: number) {
  const records: PublishedRecord[] = []
  const batches: FeedBatch[] = []
  const run = async () => {
    for await (const batch of follow(remote, { afterSeq, deltas: true, requests: remote.requests })) {
      records.push(...batch.records)
      batches.push(batch)
    }
  }
  return { records, batches, done: run() }
}

const durable = (records: readonly PublishedRecord[]) => seqsOf(records).filter((seq) => seq !== undefined)
const typesOf = (records: readonly PublishedRecord[]) => records.map(({ type }) => type)

test('over connections that break at random moments, a reader gets each event once and in order', async () => {
  const random = createRandom(Number(process.env['SEED'] ?? 1))
  await shared.log.append([message('before')])
  const remote = await open()
  const reader = await readFrom(remote, 0)
  const live: number[] = []
  remote.subscribe({ onEvents: (events) => live.push(...events.map(({ seq }) => seq)) })
  for (let round = 0; round < effort(40, 2000); round++) {
    repeats = random.pick([0, 0, 3, -1])
    if (random.below(3) === 0) cut()
    if (random.below(5) === 0) owner = (owner ?? 1) + 1
    await shared.log.append(Array.from({ length: 1 + random.below(4) }, (_, at) => message(`${round} ${at}`)))
    if (random.below(4) === 0) await tick()
  }
  repeats = 0
  const { head } = shared.log
  await expect.poll(() => remote.head).toBe(head)
  await expect.poll(() => durable(reader.records).length).toBe(head)
  expect(durable(reader.records)).toEqual(Array.from({ length: head }, (_, at) => at + 1))
  expect(live).toEqual(Array.from({ length: head - 1 }, (_, at) => at + 2))
})

test('a message of an owner that has ended is aborted, and one of an owner that is still there continues', async () => {
  const remote = await open()
  const reader = await readFrom(remote, 0)
  shared.log.publish(delta('message-1', 0, 'Hel'))
  await expect.poll(() => typesOf(reader.records)).toEqual(['AssistantDelta'])
  cut()
  await expect.poll(() => reader.records.length).toBe(2)
  expect(reader.records[1]).toMatchObject({ event: { offset: 0, text_delta: 'Hel' } })
  owner = 2
  cut()
  await expect.poll(() => typesOf(reader.records)).toContain('AssistantAborted')
  expect(reader.records.find(({ type }) => type === 'AssistantAborted')).toMatchObject({
    event: { message_id: 'message-1', conversation_id: shared.id },
  })
})

test('a reader that comes later gets the text so far of messages that are not stored yet', async () => {
  const remote = await open()
  const early = await readFrom(remote, 0)
  shared.log.publish(delta('message-1', 0, 'stored'))
  await shared.log.append([answer('message-1', 'stored')])
  shared.log.publish(delta('message-2', 0, 'Hel'))
  shared.log.publish(delta('message-2', 3, 'lo'))
  await expect.poll(() => early.records.length).toBe(4)
  const late = await readFrom(remote, remote.head)
  await expect.poll(() => late.records.length).toBe(1)
  expect(late.records).toMatchObject([{ event: { message_id: 'message-2', offset: 0, text_delta: 'Hello' } }])
})

test('a request is sent once, although the owner repeats it, and ends with its owner', async () => {
  const remote = await open()
  const reader = await readFrom(remote, 0)
  const asking = new AbortController()
  const hook = { client: CLIENT, id: 'guard', point: 'PreToolUse' as const, timeoutMs: 60_000 }
  const asked = hooks.request(hook, {}, asking.signal)
  asked.catch(() => {}) // nobody answers
  await expect.poll(() => typesOf(reader.records)).toEqual(['HookRequest'])
  cut()
  await shared.log.append([message('after the cut')])
  await expect.poll(() => typesOf(reader.records)).toEqual(['HookRequest', 'UserMessage'])
  hooks = new WaitingHooks(shared.id)
  owner = 2
  cut()
  await expect.poll(() => typesOf(reader.records)).toEqual(['HookRequest', 'UserMessage', 'HookRequestEnded'])
  expect(reader.records[2]).toMatchObject({ event: { client: CLIENT, reason: 'interrupted' } })
  asking.abort()
})

test('readers get `deleted` if the conversation is gone when its next owner is looked for, and `closing` at a stop', async () => {
  const gone = await open({
    connect: async (afterSeq) => {
      if (afterSeq !== undefined) throw new Problem('conversation_deleted', 'It was deleted.')
      return await connect(afterSeq)
    },
  })
  const reader = await readFrom(gone, 0)
  cut()
  await reader.done
  expect(reader.batches.at(-1)?.end).toBe('deleted')

  const other = await open()
  const last = await readFrom(other, 0)
  owner = undefined
  cut()
  stopping.abort()
  await last.done
  expect(last.batches.at(-1)?.end).toBe('closing')
})

test('a connection that is cut off before anything is read is an error of the reader only', async () => {
  const body = new Readable({ read: () => {} })
  const batches = readOwnerStream(body)
  body.destroy(new Error('The connection was cut.'))
  await tick()
  await expect(batches.next()).rejects.toThrow('The connection was cut.')
})

test('the first connection throws what the owner answers, and a patient one waits for the next owner', async () => {
  owner = undefined
  await expect(open()).rejects.toMatchObject({ code: 'owner_lost' })
  const patient = open({ isPatient: true })
  owner = 3
  expect((await patient).head).toBe(shared.log.head)
  owner = undefined
  const late = open({ isPatient: true })
  stopping.abort()
  await expect(late).rejects.toMatchObject({ code: 'unavailable' })
})

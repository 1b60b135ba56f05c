/** In order, at least once: over failures, restarts and changes, without the agent ever waiting for a receiver. */
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSafeFetch } from '../../src/security/safe-fetch.ts'
import type { Answering, Receiver } from '../support/receiver.ts'
import { firstSeqsOf, seqsOf, startReceiver } from '../support/receiver.ts'
import type { MakeBody } from '../../src/webhooks/dispatcher.ts'
import type { BenchOptions } from '../conversations/fixtures.ts'
import { setBench, userText } from '../conversations/fixtures.ts'
import { mortalStore } from '../conversations/mortal-store.ts'
import { override } from '../support/override.ts'
import { takeTime } from '../support/take-time.ts'
import { PATIENCE_S } from '../support/patience.ts'

const TIMING = {
  backoff: { firstMs: 5, longestMs: 20, jitterFrom: 0.5 },
  longestRetryAfterMs: 40,
  timeoutMs: 60_000,
  storeAfterMs: 10,
  silenceMs: 50,
}

type Options = BenchOptions & {
  timing?: object
  bodies?: Readonly<Record<string, MakeBody>>
}

async function setUp(answer?: Answering, { timing = {}, bodies = {}, ...options }: Options = {}) {
  const fetch = createSafeFetch({ allow: ['127.0.0.1'] })
  const bench = await setBench({
    callbacks: { fetch, bodyOf: async (name) => bodies[name], timing: { ...TIMING, ...timing } },
    ...options,
  })
  const receiver = await startReceiver(answer)
  const id = await bench.create()
  const callbacks = async () => (await bench.manager.open(id)).webhooks
  const register = async (fields: object = {}, to: Receiver = receiver) => {
    const created = await (await callbacks()).create({ url: to.url, ...fields })
    to.secret = created.secret
    return created.id
  }
  return {
    bench,
    receiver,
    id,
    callbacks,
    register,
    look: async (callbackId: string) => (await callbacks()).get(callbackId),
    deliveries: async (callbackId: string) => (await callbacks()).deliveries(callbackId, { limit: 100 }).items,
    /** Events with these seqs. */
    async say(...texts: string[]): Promise<number[]> {
      const conversation = await bench.manager.open(id)
      const seqs: number[] = []
      for (const text of texts) seqs.push((await conversation.post(userText(text))).seq)
      return seqs
    },
    marks: () => readdir(join(bench.dataDir, 'due')),
    stored: async () => JSON.parse(await readFile(join(bench.sessionOf(id), 'callbacks.json'), 'utf8')).callbacks[0],
    async [Symbol.asyncDispose]() {
      await bench[Symbol.asyncDispose]()
      await fetch.close()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

const has = (seq: number) => (all: Parameters<typeof seqsOf>[0]) => seqsOf(all).includes(seq)

test('an event that failed is tried again until it is delivered, and those behind it wait', async () => {
  const statuses = [500, 301, 404, 204]
  await using it = await setUp(() => statuses.shift() ?? 204)
  const id = await it.register()
  await it.say('one', 'two', 'three')
  await it.receiver.untilReceived(has(4))
  expect(seqsOf(it.receiver.received)).toEqual([2, 2, 2, 2, 3, 4])
  const ids = it.receiver.received.map((one) => one.id)
  expect(new Set(ids.slice(0, 4)).size).toBe(1)
  await expect.poll(async () => (await it.look(id)).cursor).toBe(4)
  expect(await it.look(id)).not.toHaveProperty('failing_since')
  expect((await it.deliveries(id)).at(-1)).toMatchObject({
    seq: 2,
    status: 'delivered',
    attempts: 4,
    response_status: 204,
  })
})

test('a failure is reported while it lasts: the status, the error, the time of the next attempt', async () => {
  await using it = await setUp((_, response) => void response.writeHead(429, { 'retry-after': '3600' }).end(), {
    timing: { longestRetryAfterMs: 3_600_000 },
  })
  const id = await it.register()
  await it.say('one')
  await expect.poll(async () => (await it.look(id)).next_attempt_at).toBeDefined()
  const { failing_since, next_attempt_at, cursor } = await it.look(id)
  expect(cursor).toBe(1)
  expect(Date.parse(next_attempt_at!) - Date.parse(failing_since!)).toBeGreaterThan(3_500_000)
  const pending = {
    seq: 2,
    status: 'pending',
    attempts: 1,
    response_status: 429,
    error: 'answered 429',
    next_attempt_at,
  }
  expect(await it.deliveries(id)).toMatchObject([pending])
  expect(it.bench.dispatcher.stats()).toMatchObject({ attempts: { refused: 1 }, oldestWaitingMs: expect.any(Number) })

  // It is looked after, and need not wait for that any more.
  it.receiver.answer = () => 204
  await (await it.callbacks()).update(id, { enabled: true })
  await it.receiver.untilReceived((all) => all.length >= 2)
  await expect.poll(() => it.bench.dispatcher.stats()).toMatchObject({ attempts: { delivered: 1 }, oldestWaitingMs: 0 })
})

test('a receiver that says nothing is given up in time, and asked again', async () => {
  let failed: object | undefined
  // A slow machine may need several attempts: the first has no answer.
  const answer = async () => {
    if (it.receiver.received.length === 1) return
    failed ??= (await it.deliveries(id))[0]
    return 204
  }
  await using it = await setUp(answer, { timing: { timeoutMs: 50 } })
  const id = await it.register()
  await it.say('one')
  await expect.poll(async () => (await it.look(id)).cursor).toBe(2)
  expect(failed).toMatchObject({ status: 'pending', error: 'no complete answer within 0.05 s' })
})

test('an event that the receiver refuses eight times is recorded as failed and skipped; redeliver sends it again', async () => {
  let refuses = true
  await using it = await setUp(({ body }) => (refuses && body.event.seq === 2 ? 422 : 204))
  const id = await it.register()
  await it.say('refused', 'fine')
  await it.receiver.untilReceived(has(3))
  expect(seqsOf(it.receiver.received)).toEqual([...Array.from({ length: 8 }, () => 2), 3])
  const failed = { seq: 2, status: 'failed', attempts: 8, response_status: 422 }
  await expect.poll(async () => (await it.look(id)).cursor).toBe(3)
  expect(await it.deliveries(id)).toMatchObject([{ seq: 3, status: 'delivered' }, failed])
  await it.bench.restart()
  expect(await it.deliveries(id)).toMatchObject([failed])
  refuses = false
  await (await it.callbacks()).redeliver(id, 2)
  await it.receiver.untilReceived((all) => all.length >= 11)
  expect(seqsOf(it.receiver.received).slice(9)).toEqual([2, 3])
})

describe('is disabled, with the reason, and continues from there when it is enabled:', () => {
  async function check(it: Awaited<ReturnType<typeof setUp>>, id: string, reason: string) {
    await expect.poll(async () => (await it.look(id)).enabled).toBe(false)
    expect(await it.look(id)).toMatchObject({ disabled_reason: expect.stringContaining(reason), cursor: 1 })
    const before = it.receiver.received.length
    await it.say('while it is disabled')
    // Nothing waits for a callback that is disabled.
    await expect.poll(it.marks).toEqual([])
    await it.bench.restart()
    expect(await it.look(id)).toMatchObject({ enabled: false, cursor: 1 })
    it.receiver.answer = () => 204
    const enabled = await (await it.callbacks()).update(id, { enabled: true })
    expect(enabled).not.toHaveProperty('disabled_reason')
    await it.receiver.untilReceived(has(3))
    expect(seqsOf(it.receiver.received.slice(before))).toEqual([2, 3])
    expect(it.bench.logged.filter((line) => line.includes('a callback was disabled'))).toHaveLength(1)
  }

  test('after 410', async () => {
    await using it = await setUp(() => 410)
    const id = await it.register()
    await it.say('one')
    await check(it, id, '410 Gone')
    expect(it.receiver.received.filter(({ body }) => body.event.seq === 2)).toHaveLength(2)
  })

  test('after failures only for too long', async () => {
    await using it = await setUp(() => 500, { timing: { giveUpMs: 60 } })
    const id = await it.register()
    await it.say('one')
    await check(it, id, 'all attempts')
  })
})

test('a restart continues at the cursor: failing deliveries are retried, delivered ones are not', async () => {
  await using it = await setUp()
  const id = await it.register()
  await it.say('one')
  await expect.poll(async () => (await it.stored()).cursor).toBe(2)
  await it.receiver.down()
  await it.say('two')
  await expect.poll(async () => (await it.stored()).failing?.attempts).toBeGreaterThan(0)
  const { since } = (await it.stored()).failing
  await it.bench.restart({ kill: true })
  await expect.poll(async () => (await it.look(id)).failing_since).toBe(since)
  await it.receiver.up()
  await it.receiver.untilReceived(has(3))
  await expect.poll(async () => (await it.look(id)).cursor).toBe(3)
  expect(seqsOf(it.receiver.received.slice(1))).toContain(3)
  expect(firstSeqsOf(it.receiver.received)).toEqual([2, 3])
})

describe('the mark for pending deliveries', () => {
  test('is set before an event is stored, and kept until the event is delivered and the cursor is on disk', async () => {
    let held = Promise.withResolvers<void>()
    await using it = await setUp(async () => {
      await held.promise
      return 204
    })
    await it.register()
    await expect.poll(it.marks).toEqual([])
    await using quick = await startReceiver()
    const other = await it.bench.manager.open(await it.bench.create())
    const { secret } = await other.webhooks.create({ url: quick.url })
    quick.secret = secret
    const deliverOther = async () => {
      await other.post(userText('hello'))
      await expect.poll(it.marks).toEqual([it.id])
    }
    for (const seq of [2, 3]) {
      await it.say('hello')
      // The other one may not have delivered everything yet.
      expect(await it.marks()).toContain(it.id)
      // Others, which have come later, are stored as delivered meanwhile.
      for (let times = 0; times < 3; times++) await deliverOther()
      expect(await it.marks()).toContain(it.id)
      held.resolve()
      await expect.poll(it.marks).toEqual([])
      expect((await it.stored()).cursor).toBe(seq)
      held = Promise.withResolvers()
    }
    held.resolve()
  })

  test('has a start open the conversations that have it, and no other; one that stands for nothing goes', async () => {
    await using it = await setUp()
    await it.register()
    await it.receiver.down()
    await it.say('one')
    const others = [await it.bench.create(), await it.bench.create()]
    await it.bench.restart({ kill: true })
    expect(await it.marks()).toEqual([it.id])
    await it.receiver.up()
    // Nobody asks for it.
    await it.receiver.untilReceived(has(2))
    await expect.poll(it.marks).toEqual([])
    for (const each of [...others, crypto.randomUUID()]) await writeFile(join(it.bench.dataDir, 'due', each), '')
    await it.bench.restart()
    await expect.poll(it.marks).toEqual([])
  })

  test('goes after an event that was being stored when the only callback was disabled', async () => {
    const store = mortalStore()
    const append = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    let [isSlow, isAppending] = [false, false]
    const logs = override(store, {
      async create(...args) {
        const log = await store.create(...args)
        const appendNow = log.append.bind(log)
        log.append = async (...batch) => {
          isAppending = isSlow
          if (isSlow) await append.promise
          return await appendNow(...batch)
        }
        return log
      },
    })
    const refuse = async () => {
      await answer.promise
      return 410
    }
    await using it = await setUp(refuse, { logs })
    await it.register()
    await it.say('one')
    await it.receiver.untilReceived(has(2))
    isSlow = true
    const second = it.say('two')
    await expect.poll(() => isAppending).toBe(true)
    answer.resolve()
    await expect.poll(async () => (await it.stored()).enabled).toBe(false)
    append.resolve()
    await second
    await expect.poll(it.marks).toEqual([])
  })

  test('costs a conversation without callbacks nothing', async () => {
    await using it = await setUp()
    await it.say('one')
    expect(await it.marks()).toEqual([])
    expect(await readdir(it.bench.sessionOf(it.id))).not.toContain('callbacks.json')
  })

  test('goes with its conversation', async () => {
    await using it = await setUp(() => 500)
    await it.register()
    await it.say('one')
    expect(await it.marks()).toEqual([it.id])
    await it.bench.manager.delete(it.id)
    expect(await it.marks()).toEqual([])
  })
})

describe('one receiver that does not answer', () => {
  test('holds up no other, of the same conversation or of others, however many callbacks lead to it', async () => {
    await using slow = await startReceiver(() => {})
    await using it = await setUp()
    for (let n = 0; n < 19; n++) await it.register({}, slow)
    slow.secret = undefined
    await it.register()
    const other = await it.bench.create()
    const conversation = await it.bench.manager.open(other)
    const { secret } = await conversation.webhooks.create({ url: it.receiver.url })
    await it.say('one', 'two')
    await it.receiver.untilReceived(has(3))
    it.receiver.secret = secret
    await conversation.post(userText('hello'))
    await it.receiver.untilReceived((all) => all.length >= 3)
    await slow.untilReceived((all) => all.length > 0)
    // Its own share, and not more.
    expect(slow.received.length).toBeLessThanOrEqual(16)
  })

  test('is behind the agent, which runs on', async () => {
    await using it = await setUp(() => {})
    await it.register()
    const conversation = await it.bench.manager.open(it.id)
    const { run_id } = await conversation.post(userText('go', true))
    const { result } = await conversation.waitForRun(run_id!, PATIENCE_S, new AbortController().signal)
    expect(result).toMatchObject({ stop_reason: 'completed' })
    await it.receiver.untilReceived((all) => all.length >= 1)
    expect(seqsOf(it.receiver.received)).toEqual([2])
  })

  test('does not keep its callback, its conversation or the server from going', async () => {
    await using it = await setUp(() => {})
    const id = await it.register()
    await it.say('one')
    await it.receiver.untilReceived((all) => all.length >= 1)
    await (await it.callbacks()).remove(id)
    await it.register()
    await it.say('two')
    await it.receiver.untilReceived((all) => all.length >= 2)
    await it.bench.restart()
    await it.receiver.untilReceived((all) => all.length >= 3)
    await it.bench.manager.delete(it.id)
    expect(seqsOf(it.receiver.received)).toEqual([2, 3, 3])
  })
})

test('a burst larger than a reader’s buffer is delivered completely and in order', async () => {
  await using it = await setUp(async () => {
    await takeTime(1)
    return 204
  })
  const id = await it.register()
  const { log } = await it.bench.manager.open(it.id)
  const seqs: number[] = []
  const draft = { type: 'UserMessage', source: 'user', run: false } as const
  for (let n = 0; n < 20; n++) {
    const drafts = Array.from({ length: 30 }, () => ({
      ...draft,
      content: [{ type: 'text' as const, text: 'x'.repeat(200) }],
    }))
    seqs.push(...(await log.append(drafts)).map(({ seq }) => seq))
    await takeTime(2)
  }
  await it.receiver.untilReceived(has(seqs.at(-1)!))
  expect(seqsOf(it.receiver.received)).toEqual(seqs)
  await expect.poll(async () => (await it.look(id)).cursor).toBe(seqs.at(-1))
})

test('a filter that nothing matches does not hold the cursor back permanently', async () => {
  await using it = await setUp()
  const id = await it.register({ events: ['Result'] })
  await it.say('one', 'two')
  await expect.poll(async () => (await it.look(id)).cursor).toBe(3)
  await expect.poll(it.marks).toEqual([])
  expect(it.receiver.received).toEqual([])
})

test('an event without a body, or whose body cannot be made, is skipped, and holds nothing back', async () => {
  const made: number[] = []
  await using it = await setUp(() => 204, {
    bodies: {
      // oxlint-disable-next-line typescript/require-await -- the first body throws within the promise
      test: async (_log, _form, seq) => {
        made.push(seq)
        if (seq === 2) throw new Error('no body')
        return seq === 3 ? '{}' : undefined
      },
    },
  })
  const form = { protocol: 'test', id: 'a', start: 1, context: 'b' }
  const { id } = await (await it.callbacks()).createWithForm({ url: it.receiver.url }, form, 1)
  await it.say('one', 'two', 'three')
  await expect.poll(async () => (await it.look(id)).cursor).toBe(4)
  expect(made).toEqual([2, 3, 4])
  expect(it.receiver.received.map(({ text }) => text)).toEqual(['{}'])
  expect(it.bench.dispatcher.stats().oldestWaitingMs).toBe(0)
  expect((await it.deliveries(id)).map(({ seq, status, error }) => [seq, status, error])).toEqual([
    [3, 'delivered', undefined],
    [2, 'failed', 'its body could not be made'],
  ])
})

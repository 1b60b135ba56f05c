import { describe, expect, onTestFinished, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createRandom } from '../support/random.ts'
import { takeTime } from '../support/take-time.ts'
import type { Bench, BenchOptions, Gate } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, until, userText } from './fixtures.ts'
import type { Fault } from './mortal-store.ts'
import { mortalStore } from './mortal-store.ts'

const TAKEN_BACK = 'delete everything'

/** The first answer calls a tool that takes as long as the test wants; the second one ends the run. */
async function setScene(options: BenchOptions = {}): Promise<{ bench: Bench; conversation: Conversation; work: Gate }> {
  const work = gate('Work')
  const script: Script = ({ messages }) =>
    messages.some(({ role }) => role === 'tool') ? { text: 'done' } : { calls: [call('Work')] }
  const bench = await setBench({ script, tools: [work.tool], ...options })
  onTestFinished(() => bench[Symbol.asyncDispose]())
  return { bench, work, conversation: await bench.converse() }
}

const requestsWith = ({ model }: Bench, text: string) =>
  model.requests.filter(({ body }) => JSON.stringify(body.messages).includes(text))

const withdraw = ({ withdrawals }: Conversation, { event_id }: { readonly event_id: string }) =>
  withdrawals.withdraw(event_id)

const stopReasons = async (conversation: Conversation) =>
  only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)

test('a message that was withdrawn while a tool ran is in no request, and the run ends without an answer to it', async () => {
  const { bench, conversation, work } = await setScene()
  const { run_id } = await conversation.post(userText('go', true))
  await work.entered
  const posted = await conversation.post(userText(TAKEN_BACK, true))
  const withdrawn = await withdraw(conversation, posted)
  expect(withdrawn).toEqual({
    event_id: posted.event_id,
    seq: posted.seq + 1,
    message: { role: 'user', content: [{ type: 'text', text: TAKEN_BACK }] },
  })
  work.open()
  expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'completed', steps: 2 })
  expect(await say(conversation, 'and now')).toMatchObject({ stop_reason: 'completed' })
  expect(requestsWith(bench, 'and now')).toHaveLength(1)
  expect(requestsWith(bench, TAKEN_BACK)).toEqual([])
  expect(await stopReasons(conversation)).toEqual(['completed', 'completed'])
})

test('the same withdrawal again returns the same, also at the same time and after more answers', async () => {
  const { conversation, work } = await setScene()
  const { run_id } = await conversation.post(userText('go', true))
  await work.entered
  const posted = await conversation.post(userText(TAKEN_BACK))
  const answers = await Promise.all([withdraw(conversation, posted), withdraw(conversation, posted)])
  work.open()
  await endOf(conversation, run_id!)
  expect(new Set([...answers, await withdraw(conversation, posted)].map((each) => JSON.stringify(each))).size).toBe(1)
  expect(only(await eventsOf(conversation), 'MessageWithdrawn')).toHaveLength(1)
})

test('a message that a request has, which is being answered or was, cannot be withdrawn', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  await using bench = await setBench({ script: () => promise.then(() => ({ text: 'done' })) })
  const conversation = await bench.converse()
  const posted = await conversation.post(userText('go', true))
  await expect.poll(() => bench.model.requests.length).toBe(1)
  await expect(withdraw(conversation, posted)).rejects.toMatchObject({ code: 'already_read' })
  resolve()
  await endOf(conversation, posted.run_id!)
  await expect(withdraw(conversation, posted)).rejects.toMatchObject({ code: 'already_read', details: { seq: 2 } })
  expect(only(await eventsOf(conversation), 'MessageWithdrawn')).toEqual([])
})

test('after a pause that leaves no answer, the message that began the run can be withdrawn', async () => {
  await using bench = await setBench({ script: () => ({ text: 'late', delay_ms: 1e6 }) })
  const conversation = await bench.converse()
  const posted = await conversation.post(userText(TAKEN_BACK, true))
  await expect.poll(() => bench.model.requests.length).toBe(1)
  await conversation.pause({ interrupt: true })
  expect(await withdraw(conversation, posted)).toMatchObject({ event_id: posted.event_id })
  await conversation.run()
  await expect.poll(() => bench.model.requests.length).toBe(2)
  expect(requestsWith(bench, TAKEN_BACK)).toHaveLength(1)
})

test('only messages can be withdrawn, and not that of a task', async () => {
  const { conversation, work } = await setScene()
  const message = { role: 'user' as const, content: 'a task' }
  await conversation.tasks.post({ title: 'a task', runnable: { type: 'AgentRun', message } })
  await work.entered
  const events = await eventsOf(conversation)
  for (const { id } of [events[0]!, only(events, 'UserMessage')[0]!, { id: crypto.randomUUID() }])
    await expect(conversation.withdrawals.withdraw(id)).rejects.toMatchObject({ code: 'message_not_found' })
  work.open()
})

describe('what waits besides is still answered', () => {
  test.each([0, 1])('when message %i of two is withdrawn', async (which) => {
    const { bench, conversation, work } = await setScene()
    const { run_id } = await conversation.post(userText('go', true))
    await work.entered
    const both = [
      await conversation.post(userText('the first', true)),
      await conversation.post(userText('the second', true)),
    ] as const
    await withdraw(conversation, both[which]!)
    work.open()
    await endOf(conversation, run_id!)
    const last = JSON.stringify(bench.model.requests.at(-1)!.body.messages)
    expect([last.includes('the first'), last.includes('the second')]).toEqual([which === 1, which === 0])
  })

  test('when the run ends before it has read the other message', async () => {
    const { bench, work } = await setScene()
    const conversation = await bench.converse({ max_iteration_per_run: 1 })
    const { run_id } = await conversation.post(userText('go', true))
    await work.entered
    await conversation.post(userText('the first', true))
    await withdraw(conversation, await conversation.post(userText(TAKEN_BACK, true)))
    work.open()
    expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'iteration_limit' })
    await until(conversation, 'AssistantMessage', ({ text }) => text === 'done')
    expect(requestsWith(bench, 'the first')).toHaveLength(1)
  })
})

test('a run that began for the message, and waits for its turn, ends with the withdrawal', async () => {
  const { bench, conversation: other, work } = await setScene({ maxRuns: 1 })
  const { run_id } = await other.post(userText('go', true))
  await work.entered
  const conversation = await bench.converse()
  const posted = await conversation.post(userText(TAKEN_BACK, true))
  await until(conversation, 'StatusUpdate', ({ reason }) => reason === 'queued')
  await withdraw(conversation, posted)
  expect(conversation.view()).toMatchObject({ status: 'idle' })
  expect(await stopReasons(conversation)).toEqual(['cancelled'])
  work.open()
  await endOf(other, run_id!)
  expect(requestsWith(bench, TAKEN_BACK)).toEqual([])
  expect(await say(conversation, 'something else')).toMatchObject({ stop_reason: 'completed' })
})

test('a request waits for a withdrawal that is being stored', async () => {
  const store = mortalStore()
  const { bench, work } = await setScene({ logs: store })
  const conversation = await bench.converse()
  const { run_id } = await conversation.post(userText('go', true))
  await work.entered
  const posted = await conversation.post(userText(TAKEN_BACK, true))
  const storing = Promise.withResolvers<void>()
  store.fault = () => {
    storing.resolve()
    return 'slow'
  }
  const withdrawing = withdraw(conversation, posted)
  await storing.promise
  work.open()
  await withdrawing
  expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'completed', steps: 2 })
  expect(requestsWith(bench, TAKEN_BACK)).toEqual([])
})

test('a withdrawal that could not be stored has not happened: the agent reads the message', async () => {
  const store = mortalStore()
  const { bench, work } = await setScene({ logs: store })
  const conversation = await bench.converse()
  const { run_id } = await conversation.post(userText('go', true))
  await work.entered
  const posted = await conversation.post(userText('read this', true))
  let fault: Fault | undefined = 'storage_full'
  store.fault = () => fault
  await expect(withdraw(conversation, posted)).rejects.toMatchObject({ code: 'storage_full' })
  fault = undefined
  work.open()
  await endOf(conversation, run_id!)
  expect(requestsWith(bench, 'read this')).toHaveLength(1)
})

test('a withdrawal survives a kill, and what a fork copies of it counts there, too', async () => {
  const store = mortalStore()
  const { bench, work } = await setScene({ logs: store })
  const before = await bench.converse()
  await before.post(userText('go', true))
  await work.entered
  await withdraw(before, await before.post(userText(TAKEN_BACK, true)))
  await bench.restart({ kill: true, between: store.die })
  work.open()
  const after = await bench.manager.open(before.id)
  const { id } = await bench.manager.fork(before.id, { workdir: 'copy' })
  for (const each of [after, await bench.manager.open(id)]) await say(each, 'and now')
  expect(requestsWith(bench, 'and now').length).toBeGreaterThanOrEqual(2)
  expect(requestsWith(bench, TAKEN_BACK)).toEqual([])
})

test('what a summary may contain counts as read, and a compaction has the message from its beginning', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const script: Script = async ({ text }) => {
    if (!text.includes('summary')) return { text: 'words '.repeat(300) }
    await promise
    return { text: 'A summary.' }
  }
  await using bench = await setBench({ script })
  const conversation = await bench.converse()
  for (const each of ['one', 'two', 'three']) await say(conversation, each)
  const posted = await conversation.post(userText(TAKEN_BACK))
  const compacted = conversation.compactions.compact({})
  await expect.poll(() => bench.model.requests.length).toBe(4)
  await expect(withdraw(conversation, posted)).rejects.toMatchObject({ code: 'conversation_running' })
  resolve()
  await compacted
  await expect(withdraw(conversation, posted)).rejects.toMatchObject({ code: 'already_read' })
})

/** Moments between the steps of a run. */
const MOMENTS = 40

test('at any moment, either a request has the message or it is withdrawn, and no run continues for nothing', async () => {
  const random = createRandom(7)
  const script: Script = async ({ messages, body }) => {
    await takeTime(random.below(3))
    const text = JSON.stringify(body.messages.at(-1))
    if (text.includes('"Continue."')) return { text: 'Continued for nothing.' }
    return messages.at(-1)?.role === 'user' && text.includes('go') ? { calls: [call('Quick')] } : { text: 'done' }
  }
  const quick = tool('Quick', () => ({ output: 'quick' }))
  await using bench = await setBench({ script, tools: [quick] })
  const outcomes = new Set<string>()
  for (let moment = 0; moment < MOMENTS; moment++) {
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await takeTime(random.below(6))
    const text = `message ${moment}.`
    const posted = await conversation.post(userText(text, true))
    await takeTime(random.below(4))
    const outcome = await withdraw(conversation, posted).then(
      () => 'withdrawn',
      (error: { code: string }) => error.code,
    )
    await endOf(conversation, posted.run_id!)
    expect(requestsWith(bench, text).length > 0, `${outcome} at moment ${moment}`).toBe(outcome === 'already_read')
    outcomes.add(outcome)
    const answers = only(await eventsOf(conversation), 'AssistantMessage').map(({ text: said }) => said)
    expect(answers, `${outcome} at moment ${moment}`).not.toContain('Continued for nothing.')
  }
  expect(outcomes).toEqual(new Set(['withdrawn', 'already_read']))
})

test('after a withdrawal, no request has the message, whatever pauses, runs and compactions come at the same time', async () => {
  const random = createRandom(7)
  const script: Script = async ({ text, messages }) => {
    await takeTime(random.below(4))
    if (text.includes('summary')) return { text: 'A summary.' }
    return messages.length % 3 > 0 ? { text: 'words '.repeat(200), calls: [call('Quick')] } : { text: 'done' }
  }
  const quick = tool('Quick', () => ({ output: 'quick '.repeat(200) }))
  await using bench = await setBench({ script, tools: [quick] })
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, context_window: 4000 }
  const conversation = await bench.converse({ llm_config, generate_title: true })
  const attempt = async (at: number) => {
    const text = `message ${at}.`
    const posted = await conversation.post(userText(text, random.below(2) === 0))
    await takeTime(random.below(12))
    if (random.below(3) === 0) await conversation.pause({ interrupt: random.below(2) === 0 })
    // Refused, or without effect, at many of these moments.
    if (random.below(4) === 0) await conversation.compactions.compact({}).catch(() => {})
    if (random.below(3) === 0) await conversation.run().catch(() => {})
    const sentBefore = await withdraw(conversation, posted).then(
      () => bench.model.requests.length,
      () => undefined,
    )
    return { text, sentBefore }
  }
  const attempts = Array.from({ length: MOMENTS }, async (_, at) => {
    await takeTime(at * 5)
    return await attempt(at)
  })
  const done = await Promise.all(attempts)
  await conversation.pause({ interrupt: true })
  // At rest it is certain that one can be withdrawn.
  await withdraw(conversation, await conversation.post(userText(TAKEN_BACK)))
  done.push({ text: TAKEN_BACK, sentBefore: bench.model.requests.length })
  await say(conversation, 'and now')
  const sentAfter = done.filter(({ text, sentBefore = Infinity }) =>
    requestsWith(bench, text).some((each) => bench.model.requests.indexOf(each) >= sentBefore),
  )
  expect(sentAfter).toEqual([])
})

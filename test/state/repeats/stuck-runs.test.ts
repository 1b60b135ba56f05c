/** Runs that end because the agent repeats itself, over HTTP with a scripted model. */
import { expect, test } from 'vitest'
import { countsIn, HABITS } from '../../../src/agent/repeats/habits.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { call, endOf, eventsOf, only, say, setBench, tool, until, userText } from '../../conversations/fixtures.ts'
import { approvalsOf } from '../../support/answering.ts'

const { adviceAt: ADVICE_AT, stuckAt: STUCK_AT } = HABITS.same

const failing = (n: number) => ({ output: `no ${n}`, error: { type: 'failed' as const, message: 'no' } })

async function setStuck(script: (step: number) => ScriptedTurn, fields: object = {}) {
  const bench = await setBench({
    tools: [tool('Fail', ({ n }) => failing(n as number)), tool('Work', () => ({ output: 'done' }))],
    script: ({ body }) => script(body.messages.filter(({ role }) => role === 'assistant').length),
  })
  return { bench, conversation: await bench.converse(fields) }
}

test('a run in which the same call fails again and again gets advice, and then ends as stuck', async () => {
  const { bench, conversation } = await setStuck(() => ({ calls: [call('Fail', { n: 1 })] }))
  await using _ = bench
  expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps: STUCK_AT })
  expect(conversation.state.status).toBe('error')
  const events = await eventsOf(conversation)
  expect(only(events, 'ToolResult').map(({ advice }) => advice !== undefined)).toEqual(
    [1, 2, 3, 4, 5, 6].map((count) => count >= ADVICE_AT && count < STUCK_AT),
  )
  expect(only(events, 'ErrorEvent')).toMatchObject([{ error_type: 'tool', retryable: false }])
  const read = bench.model.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
  expect(read.map(({ content }) => String(content).includes('Do something else'))).toEqual([
    false,
    false,
    false,
    true,
    true,
  ])
  expect(await say(conversation), 'the next one counts from the start').toMatchObject({ steps: STUCK_AT })
})

test('a run in which the same call fails with another result each time is advised later, and then ends as stuck', async () => {
  let pid = 0
  await using bench = await setBench({
    tools: [tool('Fail', () => failing(pid++))],
    script: () => ({ calls: [call('Fail')] }),
  })
  const conversation = await bench.converse()
  const steps = HABITS.failures.stuckAt
  expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps })
  const advice = only(await eventsOf(conversation), 'ToolResult').map((event) => event.advice)
  expect(advice.findIndex((each) => each !== undefined)).toBe(HABITS.failures.adviceAt - 1)
  expect(advice.at(-2)).toMatch(new RegExp(`last ${steps - 1} answers failed\\. .* After ${steps} such answers`))
})

test('a run in which two failing calls alternate ends as stuck', async () => {
  const { bench, conversation } = await setStuck((step) => ({ calls: [call('Fail', { n: step % 2 })] }))
  await using _ = bench
  expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps: HABITS.failures.stuckAt })
})

test('a run that follows the advice continues', async () => {
  const { bench, conversation } = await setStuck((step) => {
    if (step > ADVICE_AT) return { text: 'Done.' }
    return { calls: [call(step === ADVICE_AT ? 'Work' : 'Fail', { n: 1 })] }
  })
  await using _ = bench
  expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
})

test('a run whose calls needed approval is counted over its waits and over restarts', async () => {
  const { bench, conversation: first } = await setStuck(() => ({ calls: [call('Fail', { n: 1 })] }), {
    confirmation_mode: true,
  })
  await using _ = bench
  const { run_id } = await first.post(userText('go', true))
  for (let step = 1; step <= STUCK_AT; step++) {
    const conversation = await bench.manager.open(first.id)
    await until(conversation, 'StatusUpdate', ({ seq, status }) => {
      return status === 'waiting_for_confirmation' && seq === conversation.log.head
    })
    if (step === 3) await bench.restart()
    const approvals = approvalsOf(await bench.manager.open(first.id))
    await approvals.approve(approvals.pending().items[0]!.request_id)
  }
  expect(await endOf(await bench.manager.open(first.id), run_id!)).toMatchObject({ stop_reason: 'stuck' })
})

test('a run in which different calls fail in different ways ends as stuck, and asks the model for no answer in vain', async () => {
  let count = 0
  await using bench = await setBench({
    tools: [tool('Fail', ({ n }) => failing(n as number))],
    script: () => ({ calls: [call('Fail', { n: count++ })] }),
  })
  const { stuckAt } = HABITS.failures
  const conversation = await bench.converse()
  expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps: stuckAt })
  expect(bench.model.requests.at(-1)!.text).toContain('All calls of your last')
  expect(bench.model.requests).toHaveLength(stuckAt)
})

test('pauses, `max_steps` and restarts of the server do not begin the count again; a message does', async () => {
  const stop = { at: 12, reached: Promise.withResolvers<void>(), over: Promise.withResolvers<void>() }
  const read = tool('Read', async ({ path }) => {
    if (--stop.at === 0) {
      stop.reached.resolve()
      await stop.over.promise
    }
    const message = `No such file: ${String(path)}`
    return { output: message, error: { type: 'failed', message } }
  })
  let count = 0
  await using bench = await setBench({
    tools: [read],
    script: () => ({ calls: [call('Read', { path: `/${count++}` })] }),
  })
  const { id } = await bench.converse()
  for (const kill of [false, true, false]) {
    const conversation = await bench.manager.open(id)
    const end = await endOf(conversation, await conversation.run({ max_steps: 3 }))
    expect(end).toMatchObject({ stop_reason: 'max_steps', steps: 3 })
    await bench.restart({ kill })
  }
  const conversation = await bench.manager.open(id)
  expect(countsIn(conversation.state.repeats).failures).toBe(9)
  const paused = await conversation.run()
  await stop.reached.promise
  await conversation.pause({ interrupt: false })
  stop.over.resolve()
  expect(await endOf(conversation, paused)).toMatchObject({ stop_reason: 'paused', steps: 3 })
  expect(await endOf(conversation, await conversation.run())).toMatchObject({ stop_reason: 'stuck', steps: 3 })
  const { run_id } = await conversation.post(userText('go on', true))
  expect(await endOf(conversation, run_id!), 'counts from the start').toMatchObject({ steps: 15 })
})

import { describe, expect, test } from 'vitest'
import {
  ADVICE_AT,
  NO_REPEATS,
  OTHER_RESULTS_PER_REPEAT,
  STUCK_AT,
  adviceFor,
  adviceOnTexts,
  countRepeats,
  repeatsAfter,
  stuckIn,
} from '../../src/agent/repeats.ts'
import type { EventDraft } from '../../src/contract/events/event.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { answered, folded, stored, toolResult, toolUse, userMessage } from '../conversations/events.ts'
import { call, endOf, eventsOf, only, say, setBench, tool, until, userText } from '../conversations/fixtures.ts'

/** A call with its input and what came of it. */
type Made = {
  input?: unknown
  output?: unknown
  fails?: boolean
  says?: string
  why?: 'failed' | 'denied' | 'interrupted'
  exit?: number
}

let ids = 0

/** One answer with these calls, and their results. */
function turn(...calls: Made[]): EventDraft[] {
  const made = calls.map((one) => ({ ...one, id: `call-${ids++}` }))
  return [
    answered({ calls: made.map(({ id }) => id) }),
    ...made.map(({ id, input }) => toolUse(id, input)),
    ...made.map(({ id, output = 'no', fails = true, says = 'no', why = 'failed', exit }): EventDraft => {
      if (exit !== undefined) return toolResult(id, { exit_code: exit, stdout: output })
      return { ...toolResult(id, output), ...(fails && { is_error: true, error_type: why, error_message: says }) }
    }),
  ]
}

const times = <T>(count: number, make: (n: number) => T[]): T[] =>
  Array.from({ length: count }, (_, n) => make(n)).flat()
const countOf = (drafts: readonly EventDraft[]) => countRepeats(folded(drafts).repeats).calls

describe('the same failing answer in a row', () => {
  test.each<[string, EventDraft[], number]>([
    ['one call', times(5, () => turn({ input: { a: 1 } })), 5],
    ['several calls, together', times(3, () => turn({ input: 1 }, { input: 2 })), 3],
    ['many times the same call in one answer counts once', turn(...times(9, () => [{ input: 1 }])), 1],
    ['two answers that alternate', times(4, () => [...turn({ input: 1 }), ...turn({ input: 2 })]), 4],
    ['a command with another exit code than 0', times(4, () => turn({ input: 1, exit: 1 })), 4],
    ['after other failures', [...turn({ input: 1 }), ...turn({ input: 2 }), ...times(3, () => turn({ input: 3 }))], 3],
  ])('is counted: %s', (_, drafts, count) => {
    expect(countOf(drafts)).toBe(count)
  })

  test.each<[string, EventDraft[]]>([
    ['one call', times(STUCK_AT * OTHER_RESULTS_PER_REPEAT, (n) => turn({ output: n }))],
    [
      'two that alternate',
      times(STUCK_AT * OTHER_RESULTS_PER_REPEAT, (n) => [
        ...turn({ input: 1, output: n }),
        ...turn({ input: 2, exit: n + 1 }),
      ]),
    ],
  ])('counts less, but counts, where each result is another: %s', (_, drafts) => {
    expect(countOf(drafts)).toBe(STUCK_AT)
  })

  test.each<[string, EventDraft[]]>([
    ['another input each time', times(6, (n) => turn({ input: n }))],
    ['another result each time', times(6, (n) => turn({ output: n }))],
    ['three answers in turn', times(4, () => [1, 2, 3].flatMap((input) => turn({ input })))],
  ])('is not this: %s', (_, drafts) => {
    expect(countOf(drafts)).toBeLessThan(ADVICE_AT)
  })

  test.each<[string, EventDraft[]]>([
    ['a call that succeeds', turn({ fails: false })],
    ['a call that succeeds beside one that fails', turn({ input: 1 }, { fails: false })],
    ['a command that exits with 0', turn({ exit: 0 })],
    ['what the user denied', turn({ why: 'denied' })],
    ['what was interrupted', turn({ why: 'interrupted' })],
    ['an answer without calls', [answered({ text: 'I give up.' })]],
    ['a message of the user', [userMessage('try this')]],
  ])('ends with %s', (_, drafts) => {
    expect(countOf([...times(5, () => turn({ input: 1 })), ...drafts])).toBe(0)
  })

  test('is reported to the model once the pattern is complete, and not if the run ends anyway', () => {
    const advised = Array.from({ length: STUCK_AT }, (_, n) => {
      const before = folded(times(n, () => turn({ input: 1 })))
      const [answer, use, result] = turn({ input: 1 })
      const open = folded([answer!, use!], before)
      return adviceFor(open.repeats, stored(result!, open.lastSeq + 1) as never, open.openCalls) !== undefined
    })
    expect(advised).toEqual([1, 2, 3, 4, 5, 6].map((count) => count >= ADVICE_AT && count < STUCK_AT))
  })

  test('keeps a few hashes, however long it continues', () => {
    const { repeats } = folded(times(100, () => turn({ input: 'x'.repeat(1000) })))
    expect(JSON.stringify(repeats).length).toBeLessThan(1000)
    expect(repeatsAfter(repeats, stored(userMessage('stop'), 1), [])).toEqual(NO_REPEATS)
  })
})

describe('the same error of varying calls', () => {
  const often = STUCK_AT * OTHER_RESULTS_PER_REPEAT
  const stuck = (drafts: readonly EventDraft[]) => stuckIn(folded(drafts).repeats)

  test.each<[string, EventDraft[]]>([
    ['of a tool', times(often, (n) => turn({ input: n }))],
    ['of commands', times(often, (n) => turn({ input: n, exit: n + 1, output: 'npm: not found' }))],
    ['of several calls in each answer', times(often, (n) => turn({ input: n }, { input: `${n} too` }))],
  ])('%s is stuck', (_, drafts) => {
    expect(stuck(drafts)).toBe('error')
    expect(stuck(drafts.slice(0, -drafts.length / often))).toBeUndefined()
  })

  test.each<[string, EventDraft[]]>([
    ['another error each time', times(often, (n) => turn({ input: n, output: n, says: `no ${n}` }))],
    ['searches that find nothing', times(often, (n) => turn({ input: n, exit: 1, output: '' }))],
    ['two errors in turn', times(often, (n) => turn({ input: n, says: `no ${n % 2}` }))],
    ['two errors in each answer', times(often, (n) => turn({ input: n }, { input: `${n} too`, says: 'other' }))],
    [
      'a success between them',
      times(often, (n) => [...turn({ input: n }), ...(n === 6 ? turn({ fails: false }) : [])]),
    ],
    ['polling that succeeds', times(100, (n) => turn({ fails: false, output: n }))],
    ['the same call that succeeds', times(100, () => turn({ input: 1, output: 'waiting', fails: false }))],
    ['what the user denied', times(often, (n) => turn({ input: n, why: 'denied' }))],
  ])('is not this: %s', (_, drafts) => {
    expect(stuck(drafts)).toBeUndefined()
  })
})

describe('answers without a call', () => {
  const texts = (count: number, stop_reason = 'stop') =>
    times(count, () => [{ ...answered({ text: 'Nearly.' }), stop_reason }])
  const counted = (drafts: readonly EventDraft[]) => countRepeats(folded(drafts).repeats).texts

  test('are counted in a row, until a call, a message or another run', () => {
    expect(counted(texts(5))).toBe(5)
    expect(counted([...texts(5), ...turn({ fails: false })])).toBe(0)
    expect(counted([...texts(5), userMessage('go on')])).toBe(0)
    expect(counted(texts(50, 'pause_turn')), 'that the provider only paused').toBe(0)
  })

  test('are advised against before the run ends', () => {
    const advised = Array.from(
      { length: STUCK_AT },
      (_, n) => adviceOnTexts(folded(texts(n + 1)).repeats) !== undefined,
    )
    expect(advised).toEqual([false, false, false, true, true, false])
    expect(stuckIn(folded(texts(STUCK_AT)).repeats)).toBe('texts')
  })
})

describe('a run', () => {
  const failing = (n: number) => ({ output: `no ${n}`, error: { type: 'failed' as const, message: 'no' } })

  async function setStuck(script: (step: number) => ScriptedTurn, fields: object = {}) {
    const bench = await setBench({
      tools: [tool('Fail', ({ n }) => failing(n as number)), tool('Work', () => ({ output: 'done' }))],
      script: ({ body }) => script(body.messages.filter(({ role }) => role === 'assistant').length),
    })
    return { bench, conversation: await bench.converse(fields) }
  }

  test('in which the same call fails again and again gets advice, and then ends as stuck', async () => {
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

  test('in which the same call fails with another result each time is advised later, and then ends as stuck', async () => {
    let pid = 0
    await using bench = await setBench({
      tools: [tool('Fail', () => failing(pid++))],
      script: () => ({ calls: [call('Fail')] }),
    })
    const conversation = await bench.converse()
    const steps = STUCK_AT * OTHER_RESULTS_PER_REPEAT
    expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps })
    const advice = only(await eventsOf(conversation), 'ToolResult').map((event) => event.advice)
    expect(advice.findIndex((each) => each !== undefined)).toBe(ADVICE_AT * OTHER_RESULTS_PER_REPEAT - 1)
    expect(advice.at(-2)).toMatch(new RegExp(`calls ${steps - 1} times in a row\\. .* After ${steps} times`))
  })

  test('in which two failing calls alternate ends as stuck', async () => {
    const { bench, conversation } = await setStuck((step) => ({ calls: [call('Fail', { n: step % 2 })] }))
    await using _ = bench
    expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps: 2 * STUCK_AT })
  })

  test('in which different calls fail with the same error is advised, and then ends as stuck', async () => {
    const fails = () => ({ output: '', error: { type: 'failed' as const, message: 'no route to host' } })
    await using bench = await setBench({
      tools: [tool('Fail', fails)],
      script: ({ messages }) => ({ calls: [call('Fail', { n: messages.length })] }),
    })
    const conversation = await bench.converse()
    const steps = STUCK_AT * OTHER_RESULTS_PER_REPEAT
    expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps })
    const events = await eventsOf(conversation)
    const advice = only(events, 'ToolResult').map((event) => event.advice)
    expect(advice.findIndex((each) => each?.includes('same error'))).toBe(ADVICE_AT * OTHER_RESULTS_PER_REPEAT - 1)
    expect(only(events, 'ErrorEvent').at(-1)?.message).toContain('same error again and again')
  })

  test('that follows the advice continues', async () => {
    const { bench, conversation } = await setStuck((step) => {
      if (step > ADVICE_AT) return { text: 'Done.' }
      return { calls: [call(step === ADVICE_AT ? 'Work' : 'Fail', { n: 1 })] }
    })
    await using _ = bench
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  })

  test('whose calls needed approval is counted over its waits and over restarts', async () => {
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
      const { approvals } = await bench.manager.open(first.id)
      await approvals.approve(approvals.pending().items[0]!.request_id)
    }
    expect(await endOf(await bench.manager.open(first.id), run_id!)).toMatchObject({ stop_reason: 'stuck' })
  })
})

/** A call gets one result, whoever stores one: its tool, late, or the actor, which says that the call has ended. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Event, EventDraft } from '../../../src/contract/events/event.ts'
import { Problem } from '../../../src/contract/problem.ts'
import { CallResults } from '../../../src/conversations/live/call-results.ts'
import { Queue } from '../../../src/lib/queue.ts'
import type { State } from '../../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../../src/state/state.ts'
import { createTask } from '../../../src/tools/task/task.ts'
import { untilOpen } from '../../support/answering.ts'
import { effort } from '../../support/patience.ts'
import { expectWhole } from '../../support/subagents.ts'
import { toolResult } from '../events.ts'
import { call, eventsOf, gate, only, setBench, tool, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'

/** A log in which each append takes its time, or fails, and the state that follows from it. */
function setLog(ids: readonly string[]) {
  const openCalls = ids.map((toolUseId) => ({ toolUseId, name: 'Bash', input: {}, runId: undefined }))
  const stored: EventDraft[] = []
  let last: Promise<unknown> = Promise.resolve()
  const log = {
    stored,
    state: { current: { ...EMPTY_STATE, openCalls } as State },
    append(drafts: readonly EventDraft[], appended = async () => {}): Promise<void> {
      const shown = show(drafts, last, appended)
      last = shown.catch(() => {})
      return shown
    },
  }
  async function show(drafts: readonly EventDraft[], before: Promise<unknown>, appended: () => Promise<void>) {
    await before
    await appended()
    for (const draft of drafts) {
      const event = { ...draft, seq: stored.push(draft), version: 1, timestamp: '' } as unknown as Event
      log.state.current = fold(log.state.current, event)
    }
  }
  return log
}

const IDS = ['a', 'b', 'c']

/** It begins, and is appended, after so many turns of the event loop. */
type Writing = {
  readonly by: 'tool' | 'actor'
  readonly ids: readonly string[]
  readonly begins: number
  readonly takes: number
  readonly isRefused: boolean
}

const writing: fc.Arbitrary<Writing> = fc.record({
  by: fc.constantFrom('tool', 'actor'),
  ids: fc.subarray(IDS, { minLength: 1 }),
  begins: fc.nat(4),
  takes: fc.nat(3),
  isRefused: fc.boolean(),
})

async function pass(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await yieldToLoop()
}

test('property: in whatever order tools and the actor store results, a call has one, unless all were refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(writing, { minLength: 2, maxLength: 7 }), async (writings) => {
      const log = setLog(IDS)
      const results = new CallResults(log.state)
      const inbox = new Queue({ limit: 1 })
      const write = async ({ by, ids, begins, takes, isRefused }: Writing) => {
        const append = (drafts: readonly EventDraft[]) =>
          log.append(drafts, async () => {
            await pass(takes)
            if (isRefused) throw new Problem('storage_full', 'The disk is full.')
          })
        const decide = () =>
          log.state.current.openCalls
            .filter(({ toolUseId }) => ids.includes(toolUseId))
            .map(({ toolUseId }) => toolResult(toolUseId, by))
        await pass(begins)
        if (by === 'tool') await results.store([toolResult(ids[0]!, by)], append)
        else await inbox.run(() => results.decide(decide, append))
      }
      const outcomes = await Promise.allSettled(writings.map(write))
      const ids = log.stored.flatMap((draft) => (draft.type === 'ToolResult' ? [draft.tool_use_id] : []))
      expect(ids).toEqual([...new Set(ids)])
      const meant = writings.map(({ by, ids: [first = '', ...more] }) => (by === 'tool' ? [first] : [first, ...more]))
      const kept = meant.filter((_, at) => outcomes[at]?.status === 'fulfilled').flat()
      expect(ids.toSorted()).toEqual([...new Set(kept)].toSorted())
    }),
    { numRuns: effort(100, 2000) },
  )
})

test('a refusal of the actor is thrown, and holds back no result', async () => {
  const log = setLog(IDS)
  const results = new CallResults(log.state)
  const refusal = new Problem('nothing_pending', 'Nothing waits.')
  await expect(
    results.decide(
      () => refusal,
      (drafts) => log.append(drafts),
    ),
  ).rejects.toBe(refusal)
  await results.store([toolResult('a')], (drafts) => log.append(drafts))
  expect(log.stored).toHaveLength(1)
})

test('the end of a subagent is not stored a second time with a late result of its call', async () => {
  const log = setLog(IDS)
  const results = new CallResults(log.state)
  await results.decide(
    () => [toolResult('a', 'decided')],
    (drafts) => log.append(drafts),
  )
  await results.store(
    [
      { type: 'ErrorEvent', source: 'environment', error_type: 'internal', message: '', retryable: false },
      toolResult('a'),
    ],
    (drafts) => log.append(drafts),
  )
  expect(log.stored).toEqual([toolResult('a', 'decided')])
})

describe('a command of a subagent that outlives a stop of the server', () => {
  test('has one result, if it ends while the stop is being stored', async () => {
    const deaf = gate('Deaf', { stubborn: true })
    const store = mortalStore()
    const worker = (prompt: string) => call('Task', { description: 'x', prompt, subagent_type: 'worker' })
    await using bench = await setBench({
      logs: store,
      deps: {
        createTools: (names, { subagents }) => [
          deaf.tool,
          tool('Act', () => ({ output: 'acted' })),
          ...(names.includes('Task') ? [createTask(subagents)] : []),
        ],
      },
      script: ({ text }) => {
        if (text.includes('be deaf')) return { calls: [call('Deaf')] }
        if (text.includes('ask first')) return { calls: [call('Act')] }
        return { calls: [worker('be deaf'), worker('ask first')] }
      },
    })
    const conversation = await bench.converse({
      tools: ['Task'],
      agents: { worker: { description: 'Works.', prompt: 'You are a worker.' } },
      permission_mode: 'default',
      allowed_tools: ['Task', 'Deaf'],
    })
    await conversation.post(userText('begin', true))
    await deaf.entered
    const { request_id } = await untilOpen(conversation, 'permission')
    // From here on, only the stop appends. Its events take their time, and the command ends meanwhile.
    store.fault = () => {
      deaf.open()
      return 'slow'
    }
    const between = async () => void (store.fault = () => undefined)
    await bench.restart({ between })
    const again = await bench.manager.open(conversation.id)
    bench.manager.hold(conversation.id)
    expect((await untilOpen(again, 'permission')).request_id).toBe(request_id)
    const results = only(await eventsOf(again), 'ToolResult')
    expect(results.map(({ error_type }) => error_type)).toEqual(['interrupted', 'interrupted'])
    await again.pause({ interrupt: true })
    expectWhole(await eventsOf(again))
  })
})

test.each([false, true])(
  'a subagent ends after a pause with `interrupt`, as soon as its tool does (in the background: %s)',
  async (run_in_background) => {
    const deaf = gate('Deaf', { stubborn: true })
    const start = call('Task', { description: 'x', prompt: 'be deaf', subagent_type: 'worker', run_in_background })
    await using bench = await setBench({
      deps: {
        createTools: (names, { subagents }) => [deaf.tool, ...(names.includes('Task') ? [createTask(subagents)] : [])],
      },
      script: ({ text }) => {
        if (text.includes('You are a worker')) return { calls: [call('Deaf')] }
        return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [start] }
      },
    })
    const conversation = await bench.converse({
      tools: ['Task'],
      agents: { worker: { description: 'Works.', prompt: 'You are a worker.' } },
    })
    await conversation.post(userText('begin', true))
    await deaf.entered
    await conversation.pause({ interrupt: true })
    expect(conversation.state).toMatchObject({ status: 'paused', subagents: [{}] })
    deaf.open()
    await expect.poll(() => conversation.state.subagents).toEqual([])
    expect(conversation.state).toMatchObject({ status: 'paused', openCalls: [] })
    const events = await eventsOf(conversation)
    expectWhole(events)
    expect(events.some((event) => event.type === 'Result' && event.stop_reason === 'cancelled')).toBe(true)
  },
)

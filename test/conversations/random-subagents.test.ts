/** Subagents under random actions, kills and restarts: each call has one result, each subagent one end, each run one `Result`. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Event } from '../../src/contract/events/event.ts'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { effort } from '../support/patience.ts'
import { expectSentAsStored, numbered } from '../support/sent-requests.ts'
import { expectWhole } from '../support/subagents.ts'
import type { Action } from './actions.ts'
import { carryOut, ACTIONS } from './actions.ts'
import { call, eventsOf, only, setBench, tool, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'
import { takeTime } from '../support/take-time.ts'

type Luck = { kind: 'crash' } | { kind: 'stop' } | { kind: 'full' } | { kind: 'slow' }

const actions: fc.Arbitrary<(Action | Luck)[]> = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Action | Luck>[]>(...ACTIONS, {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('crash', 'stop', 'full', 'slow') }),
  }),
  { minLength: 6, maxLength: 20, size: 'max' },
)

/** The main agent calls subagents of both kinds; they act, and say something. Deterministic in the order of requests. */
function createScript(): (question: ScriptedQuestion) => ScriptedTurn {
  let count = 0
  return ({ text }) => {
    count += 1
    if (count > 60) return { text: 'Enough.' }
    const act = () => call('Act', { n: count, ms: count % 5 })
    if (text.includes('You are a subagent'))
      return count % 3 === 0 ? { text: `Said ${count}.`, delay_ms: count % 4 } : { calls: [act(), act()] }
    if (count % 4 === 3) return { text: 'So far.' }
    const task = (run_in_background: boolean) =>
      call('Task', { description: 'x', prompt: `task ${count}`, run_in_background })
    return { calls: [task(false), task(true), act(), task(false)] }
  }
}

type Outcome = { readonly events: Event[]; readonly begun: string[]; readonly asked: readonly ScriptedQuestion[] }

async function play(plan: readonly (Action | Luck)[]): Promise<Outcome> {
  const begun: string[] = []
  const act = tool('Act', async (input, { toolUseId, signal }) => {
    begun.push(toolUseId)
    await takeTime(Number(input['ms']), signal)
    return { output: 'acted' }
  })
  const store = mortalStore()
  let slow = 0
  const isSlow = () => (slow-- > 0 ? ('slow' as const) : undefined)
  store.fault = isSlow
  const deps = {
    createTools: (names: readonly string[], { subagents }: { subagents: Parameters<typeof createTask>[0] }) =>
      names.length > 0 ? [act, createTask(subagents)] : [],
  }
  // At rest, it is closed at once.
  const idle = { afterMs: 4, isShort: () => false }
  // One slot: nobody may wait for a subagent that waits for the slot.
  const { script, asked } = numbered(createScript())
  await using bench = await setBench({ logs: store, script, deps, maxRuns: 1, manager: { idle } })
  const id = await bench.create({ tools: ['Task'] })
  // As a request does: a conversation that is closed meanwhile would not run.
  const release = bench.manager.hold(id)
  let live = await bench.manager.open(id)
  await live.post(userText('begin', true))
  if (plan.length === 0) await completed(live)
  release()
  for (const action of plan) {
    if (action.kind === 'crash') await bench.restart({ kill: true, between: store.die })
    else if (action.kind === 'stop') await bench.restart()
    else if (action.kind === 'full') {
      store.fault = () => 'storage_full'
      await takeTime(5)
      store.fault = isSlow
    } else if (action.kind === 'slow') slow = 5
    else await carryOut(live, action).catch((error: unknown) => expect(error).toMatchObject({ name: 'Problem' }))
    live = await bench.manager.open(id)
  }
  bench.manager.hold(id)
  const last = await bench.manager.open(id)
  await expect.poll(() => last.state.status).not.toBe('running')
  await expect
    .poll(async () => {
      await last.pause({ interrupt: true })
      const left = last.state.subagents.length + last.state.openCalls.length
      // The next run stores the results that a full disk has refused.
      if (left > 0) await last.run().catch(() => {}) // it waits, or runs already
      return left
    })
    .toBe(0)
  expect(last.state.status).not.toBe('running')
  return { events: await eventsOf(last), begun, asked }
}

/** Resolves when a subagent of a call, and one in the background, have come to their ends. */
async function completed(live: Conversation): Promise<void> {
  const ends = async () => only(await eventsOf(live), 'Result').filter((event) => event.parent_tool_use_id)
  await expect
    .poll(async () => (await ends()).some((event) => event.background_agent_id !== undefined), { interval: 10 })
    .toBe(true)
  await expect
    .poll(async () => (await ends()).some((event) => event.stop_reason === 'completed'), { interval: 10 })
    .toBe(true)
}

/** It says how results are shown. */
const TASK = createTask({ agents: () => '', run: () => Promise.reject(new Error('It does not run.')) })

test('property: whatever happens, each call has one result, each subagent one end, and each run one result', async () => {
  const seen = { background: 0, cutOff: 0, completed: 0 }
  await fc.assert(
    fc.asyncProperty(actions, async (plan) => {
      const { events, begun, asked } = await play(plan)
      expectWhole(events)
      expectSentAsStored(events, asked, { tools: [TASK] })
      expect(begun.length, 'no call runs twice').toBe(new Set(begun).size)
      for (const event of events) {
        if (event.type !== 'Result' || !event.parent_tool_use_id) continue
        if (event.background_agent_id) seen.background += 1
        if (event.stop_reason === 'server_restart') seen.cutOff += 1
        if (event.stop_reason === 'completed') seen.completed += 1
      }
    }),
    // First without any action: of few random plans, each may cut all subagents off.
    { numRuns: effort(6, 300), examples: [[[]]] },
  )
  // They may have no kill at the right time.
  expect(Math.min(seen.background, seen.completed), JSON.stringify(seen)).toBeGreaterThan(0)
})

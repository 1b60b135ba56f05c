import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { hashInput } from '../../src/policy/rules/input-hash.ts'
import { createAskUserQuestion } from '../../src/tools/ask-user-question.ts'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { effort } from '../support/patience.ts'
import { expectSentAsStored, numbered } from '../support/sent-requests.ts'
import type { Action } from './actions.ts'
import { askCall, carryOut, ACTIONS } from './actions.ts'
import { call, eventsOf, only, setBench, tool, userText } from './fixtures.ts'
import { deleteWhileOpening } from './gone.ts'
import { mortalStore } from './mortal-store.ts'
import { expectWholeTurns } from './wire.ts'
import { takeTime } from '../support/take-time.ts'
import type { Status } from '../../src/contract/events/status.ts'
import { answersIn, decisionsIn, openedIn, questionsOf } from '../support/answering.ts'

/** `slow`: so many appends take their time. */
type Luck = { kind: 'crash' } | { kind: 'stop' } | { kind: 'slow'; times: number } | { kind: 'await'; status: Status }

const actions: fc.Arbitrary<(Action | Luck)[]> = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Action | Luck>[]>(
    ...ACTIONS,
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('crash', 'stop') }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('slow'), times: fc.integer({ min: 1, max: 6 }) }) },
  ),
  // By their size alone fast-check would make most of them too short to get anywhere.
  { minLength: 6, maxLength: 20, size: 'max' },
)

/** What random plans may not come to, if they are few. Questions that are open at the end are answered after an odd number. */
const ANSWERED: Luck[] = [{ kind: 'await', status: 'waiting_for_input' }]
const INTERRUPTED: Luck[] = [...ANSWERED, ...ANSWERED]
const ASKED: (Action | Luck)[] = [
  { kind: 'mode', on: true },
  { kind: 'await', status: 'waiting_for_confirmation' },
]

/** A call at its beginning, with the last event that was stored by then. */
type Begin = { readonly toolUseId: string; readonly name: string; readonly input: unknown; readonly seq: number }

type Outcome = { readonly events: Event[]; readonly begun: Begin[]; readonly asked: readonly ScriptedQuestion[] }

async function play(plan: readonly (Action | Luck)[]): Promise<Outcome> {
  const begun: Begin[] = []
  let live: Conversation | undefined
  const act = tool('Act', async (input, { toolUseId, signal }) => {
    begun.push({ toolUseId, name: 'Act', input, seq: live!.state.lastSeq })
    await takeTime(Number(input['ms']), signal)
    return { output: 'acted' }
  })
  const store = mortalStore()
  let slow = 0
  store.fault = () => (slow-- > 0 ? 'slow' : undefined)
  const turns = Array.from({ length: 60 }, (_, turn) => {
    if (turn % 4 === 3) return { text: 'So far.' }
    return turn % 4 === 1
      ? { calls: [call('Act', { n: turn * 3, ms: turn % 5 }), askCall(), askCall('And then?')] }
      : { calls: [0, 1, 2].map((at) => call('Act', { n: turn * 3 + at, ms: (turn + at) % 5 })), delay_ms: turn % 3 }
  })
  const { script, asked } = numbered(turns)
  await using bench = await setBench({ logs: store, script, tools: [act, createAskUserQuestion()] })
  const id = await bench.create()
  live = await bench.manager.open(id)
  await live.post(userText('begin', true))
  const actionsInProgress: Promise<unknown>[] = []
  for (const action of plan) {
    if (action.kind === 'crash') await bench.restart({ kill: true, between: store.die })
    else if (action.kind === 'stop') await bench.restart()
    else if (action.kind === 'slow') slow = action.times
    else if (action.kind === 'await') await expect.poll(() => live!.state.status).toBe(action.status)
    else {
      const done = carryOut(live, action).catch((error: unknown) => expect(error).toMatchObject({ name: 'Problem' }))
      // What is asked for while the disk is slow is asked for together.
      if (slow > 0) actionsInProgress.push(done)
      else await done
    }
    live = await bench.manager.open(id)
  }
  await Promise.all(actionsInProgress)
  const last = live
  // Else a run is stranded, or a message that asked for one.
  await expect.poll(() => last.state.status).not.toBe('running')
  // The other half ends while it waits.
  if (plan.length % 2) {
    for (const _ of questionsOf(last).pending().items) await carryOut(last, { kind: 'answer', question: 0 })
    await expect.poll(() => last.state.status, { interval: 5 }).not.toBe('running')
  }
  if (last.state.status === 'idle') expect(last.state.runRequestedAt).toBeLessThanOrEqual(last.state.readThrough)
  await last.pause({ interrupt: true })
  const events = await eventsOf(last)
  await bench.restart()
  await deleteWhileOpening(bench, id)
  return { events, begun, asked }
}

/** The mode, from the log alone, once the event of this seq was stored. */
const isConfirming = (events: readonly Event[], seq: number) =>
  only(events, 'ConfigUpdate').findLast((event) => event.seq <= seq)?.changes['confirmation_mode'] === true

function expectAllowed(events: readonly Event[], { toolUseId, name, input, seq }: Begin): void {
  const isAllowed = decisionsIn(events).some(
    (event) =>
      event.seq <= seq &&
      event.tool_use_id === toolUseId &&
      event.behavior === 'allow' &&
      event.input_hash === hashInput(name, input),
  )
  const asked = openedIn(events, 'permission').filter(
    (event) => event.seq <= seq && event.tool_use_ids.includes(toolUseId),
  )
  if (isConfirming(events, seq) || asked.length) expect(isAllowed, `${toolUseId} was allowed`).toBe(true)
}

/** Of messages that came while the agent was at rest: what begins after one of them is of an answer that has read it. */
function expectMessagesRead(events: readonly Event[], { toolUseId, seq }: Begin): void {
  const answer = only(events, 'AssistantMessage').find((event) => event.tool_use_ids.includes(toolUseId))!
  const since = events.filter((event) => event.type === 'UserMessage' && event.seq > answer.seq && event.seq <= seq)
  const statusAt = (message: Event) =>
    events.findLast(
      (event): event is EventOf<'StatusUpdate'> => event.type === 'StatusUpdate' && event.seq < message.seq,
    )
  for (const message of since)
    expect(statusAt(message)?.status, `${toolUseId} before the message is read`).toBe('running')
}

function expectOneResultPerCall(events: readonly Event[], begun: readonly Begin[]): void {
  const results = only(events, 'ToolResult')
  for (const { tool_use_id, name } of only(events, 'ToolUse')) {
    const own = results.filter((result) => result.tool_use_id === tool_use_id)
    if (name === 'AskUserQuestion') {
      expectAnswered(events, own)
      continue
    }
    expect(own, `results of ${tool_use_id}`).toHaveLength(1)
    const times = begun.filter(({ toolUseId }) => toolUseId === tool_use_id).length
    expect(times, `${tool_use_id} runs at most once`).toBeLessThanOrEqual(1)
    if (!own[0]!.is_error) expect(times, `${tool_use_id} has run`).toBe(1)
    if (times) expect(own[0]!.output).not.toContain('did not run')
  }
}

/** One answer makes a result, and nothing else does; the question is stored once. */
function expectAnswered(events: readonly Event[], results: readonly EventOf<'ToolResult'>[]): void {
  expect(results).toHaveLength(1)
  const [{ tool_use_id, is_error }] = results as [EventOf<'ToolResult'>] // as it was expected on the line before
  const asked = openedIn(events, 'question').filter((event) => event.tool_use_ids.includes(tool_use_id))
  const answers = answersIn(events, 'question').filter(({ request_id }) => request_id === asked[0]?.request_id)
  expect(asked.length, `questions of ${tool_use_id}`).toBeLessThanOrEqual(1)
  expect(answers, `answers to ${tool_use_id}`).toHaveLength(is_error ? 0 : 1)
}

/** By an answer about each of its calls, or by being closed; nothing comes after that. */
function expectEndedOnce(events: readonly Event[]): void {
  for (const kind of ['permission', 'question'] as const)
    for (const { request_id, tool_use_ids } of openedIn(events, kind)) {
      const answered = answersIn(events, kind)
        .filter((event) => event.request_id === request_id)
        .flatMap((event) => event.tool_use_ids)
      const closed = only(events, 'RequestClosed').filter((event) => event.request_id === request_id)
      expect(closed.length, `${request_id} is closed once`).toBeLessThanOrEqual(1)
      const ends = [...answered, ...closed.flatMap((event) => event.tool_use_ids)]
      expect(ends.toSorted(), `each call of ${request_id} is answered or given up once`).toEqual(
        tool_use_ids.toSorted(),
      )
    }
}

function expectExactRequests(events: readonly Event[], begun: readonly Begin[]): void {
  for (const request of openedIn(events, 'permission'))
    for (const tool_use_id of request.tool_use_ids)
      for (const { toolUseId, seq } of begun)
        if (toolUseId === tool_use_id)
          expect(seq, 'a call that has begun is not asked about').toBeGreaterThan(request.seq)
}

test('property: after any sequence of actions, no call has begun unapproved or before a message was read, and each has one result', async () => {
  const seen = { begun: 0, interrupted: 0, asked: 0, answered: 0 }
  await fc.assert(
    fc.asyncProperty(actions, async (plan) => {
      const { events, begun, asked } = await play(plan)
      for (const begin of begun) expectAllowed(events, begin)
      for (const begin of begun) expectMessagesRead(events, begin)
      expectOneResultPerCall(events, begun)
      expectExactRequests(events, begun)
      expectEndedOnce(events)
      for (const { messages } of asked) expectWholeTurns(messages)
      expectSentAsStored(events, asked)
      seen.begun += begun.length
      seen.asked += openedIn(events, 'permission').length
      seen.answered += answersIn(events, 'question').length
      seen.interrupted += only(events, 'ToolResult').filter((event) => event.error_type === 'interrupted').length
    }),
    { numRuns: effort(8, 700), examples: [[ANSWERED], [INTERRUPTED], [ASKED]] },
  )
  for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0)
})

/** Several conversations, a disk that fails or is slow, and a server that is stopped and killed: whatever comes, each run ends by itself. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import type { State } from '../../src/state/state.ts'
import { nextTasks, runningJobs } from '../../src/state/task-state.ts'
import { follow } from '../../src/events/event-feed.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { readAll } from '../events/fixtures.ts'
import { createAskUserQuestion } from '../../src/tools/ask-user-question.ts'
import { effort } from '../support/patience.ts'
import { expectSentAsStored, numbered } from '../support/sent-requests.ts'
import type { Action } from './actions.ts'
import { askCall, carryOut, ACTIONS } from './actions.ts'
import { call, only, setBench, tool, userText } from './fixtures.ts'
import { deleteWhileOpening, expectGone } from './gone.ts'
import type { Fault } from './mortal-store.ts'
import { mortalStore } from './mortal-store.ts'
import { takeTime } from '../support/take-time.ts'
import { answersIn, openedIn } from '../support/answering.ts'
import { until } from '../support/until.ts'

const CONVERSATIONS = 3

/** Fewer than there are conversations: some wait for their turn. */
const MAX_RUNS = 2

type Step =
  | { kind: 'action'; at: number; action: Action }
  /** So many appends in a row are refused, or take their time. */
  | { kind: 'fault'; at: number; fault: Fault; times: number }
  /** One conversation may be deleted afterwards, while it is opened again. */
  | { kind: 'crash' | 'stop'; deleted: number | undefined }

const at = fc.nat(CONVERSATIONS - 1)
const faults = fc.constantFrom<Fault>('storage_full', 'storage_failed', 'stored_and_failed', 'unavailable', 'slow')
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Step>[]>(
    { weight: 12, arbitrary: fc.record({ kind: fc.constant('action' as const), at, action: fc.oneof(...ACTIONS) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('fault' as const),
        at,
        fault: faults,
        times: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom('crash', 'stop'),
        deleted: fc.option(at, { nil: undefined, freq: 1 }),
      }),
    },
  ),
  { minLength: 15, maxLength: 40, size: 'max' },
)

const PAUSED: Step[] = Array.from({ length: CONVERSATIONS }, (_, at) => ({
  kind: 'action',
  at,
  action: { kind: 'pause', interrupt: false },
}))

/** Reads on where it was, in each log that is opened, and asks for none to be opened: what a client sees that stays. */
function createReader() {
  const seen = new Map<string, (number | undefined)[]>()
  const latest = new Map<string, EventLog>()
  const read = async (log: EventLog) => {
    const { conversationId: id } = log
    const seqs = seen.get(id) ?? []
    seen.set(id, seqs)
    latest.set(id, log)
    for await (const { records } of follow(log, { afterSeq: seqs.at(-1) ?? 0 })) {
      if (latest.get(id) !== log) return
      seqs.push(...records.map((record) => ('seq' in record ? record.seq : undefined)))
    }
  }
  return { seen, attach: (log: EventLog) => void read(log) }
}

type Outcome = {
  readonly events: readonly Event[]
  readonly seen: readonly (number | undefined)[]
  readonly asked: readonly ScriptedQuestion[]
}

async function play(plan: readonly Step[]): Promise<Outcome[]> {
  const reader = createReader()
  const store = mortalStore()
  const refusals = new Map<string, { fault: Fault; times: number }>()
  store.fault = (id) => {
    const refusal = refusals.get(id)
    return refusal && refusal.times-- > 0 ? refusal.fault : undefined
  }
  const act = tool('Act', async (input, { signal }) => {
    await takeTime(Number(input['ms']), signal)
    return { output: 'acted' }
  })
  const turns = Array.from({ length: 150 }, (_, turn) => {
    if (turn % 6 === 4) return { calls: [call('Act', { n: turn, ms: 1 }), askCall()] }
    return turn % 3 === 2
      ? { text: 'So far.' }
      : { calls: [0, 1].map((n) => call('Act', { n: turn * 2 + n, ms: (turn + n) % 4 })), delay_ms: turn % 3 }
  })
  const { script, asked } = numbered(turns)
  const deps = { onLogOpened: reader.attach }
  await using bench = await setBench({
    logs: store,
    deps,
    script,
    tools: [act, createAskUserQuestion()],
    maxRuns: MAX_RUNS,
  })
  const ids: string[] = []
  for (let i = 0; i < CONVERSATIONS; i++) ids.push(await bench.create({ resume_on_start: i === 0 }))
  for (const id of ids) await (await bench.manager.open(id)).post(userText('begin', true))
  const gone = new Set<string>()
  for (const step of plan) {
    if (step.kind === 'fault') refusals.set(ids[step.at]!, { ...step })
    else if (step.kind === 'action') {
      const done = bench.manager.open(ids[step.at]!).then((conversation) => carryOut(conversation, step.action))
      await done.catch((error: unknown) => expect(error).toMatchObject({ name: 'Problem' }))
    } else {
      await bench.restart(step.kind === 'crash' ? { kill: true, between: store.die } : {})
      const id = step.deleted === undefined ? undefined : ids[step.deleted]!
      if (id === undefined || gone.has(id)) continue
      await deleteWhileOpening(bench, id)
      gone.add(id)
    }
  }
  for (const id of gone) await expectGone(bench, id)
  const left = ids.filter((id) => !gone.has(id))
  // From here on nobody asks for anything: what is stuck now is stuck for ever.
  const look = async (id: string): Promise<Outcome> => {
    await using log = await createJsonlStore(store.home).view(id)
    const events = (await readAll(log)).map((stored) => stored.event)
    // A call that a pause left running may end at any time.
    return { events, seen: reader.seen.get(id)!.slice(0, events.length), asked }
  }
  for (const id of left)
    await expect.poll(async () => whatIsLeft(stateOf((await look(id)).events)), { interval: 10 }).toEqual([])
  refusals.clear()
  // The readers come back, also where a crash left nothing to do. An event is in the file before they see it.
  return await Promise.all(
    left.map(async (id) => {
      // An opening may be in progress whose last write was stored, and is reported as failed: the next one succeeds.
      await bench.manager.open(id).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'storage_failed' })
        return bench.manager.open(id)
      })
      return await until('that the reader has seen the log', async () => {
        const outcome = await look(id)
        return outcome.seen.length === outcome.events.length ? outcome : undefined
      })
    }),
  )
}

const stateOf = (events: readonly Event[]): State => events.reduce(fold, EMPTY_STATE)

function whatIsLeft(state: State): string[] {
  const isCutOff = state.status === 'paused' && /^server_(restart|closing)$/.test(state.reason)
  return [
    ...(isCutOff && state.settings.resume_on_start ? ['a run to resume'] : []),
    ...(state.status === 'running' ? ['a run'] : []),
    ...(state.status === 'idle' && state.runRequestedAt > state.readThrough ? ['a message'] : []),
    ...nextTasks(state).map(({ id }) => `task ${id}`),
    ...runningJobs(state).map(({ id }) => `job ${id}`),
  ]
}

function expectWhole({ events, seen }: Outcome): void {
  const state = stateOf(events)
  expect(
    events.map(({ seq }) => seq),
    'no gap',
  ).toEqual(events.map((_, i) => i + 1))
  expect(seen, 'a reader sees each event once, in order').toEqual(events.map(({ seq }) => seq))
  const asked = new Map(openedIn(events, 'question').map((event) => [event.request_id, event.tool_use_ids[0]]))
  const answered = answersIn(events, 'question').map(({ request_id }) => asked.get(request_id))
  expect(new Set(answered).size, 'one answer for each question').toBe(answered.length)
  for (const { tool_use_id } of only(events, 'ToolUse')) {
    const results = only(events, 'ToolResult').filter((event) => event.tool_use_id === tool_use_id)
    const isOpen = state.openCalls.some((open) => open.toolUseId === tool_use_id)
    expect(results, `results of ${tool_use_id}`).toHaveLength(isOpen ? 0 : 1)
  }
  const begun = only(events, 'StatusUpdate').filter(
    ({ status }) => status === 'running' || status.startsWith('waiting'),
  )
  for (const runId of new Set(begun.flatMap(({ run_id }) => run_id ?? []))) {
    const results = only(events, 'Result').filter((event) => event.run_id === runId)
    expect(results, `results of run ${runId}`).toHaveLength(state.run?.id === runId ? 0 : 1)
  }
}

test('property: whichever writes fail and whenever the server stops, every run ends and every startable task starts automatically', async () => {
  const ends = new Set<string>()
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      for (const outcome of await play(plan)) {
        expectWhole(outcome)
        expectSentAsStored(outcome.events, outcome.asked)
        for (const { stop_reason } of only(outcome.events, 'Result')) ends.add(stop_reason)
      }
    }),
    // Of few random plans, in none may runs end in different ways.
    { numRuns: effort(8, 300), examples: [[[]], [PAUSED]] },
  )
  expect(ends.size, 'ways in which runs have ended').toBeGreaterThanOrEqual(effort(2, 6))
})

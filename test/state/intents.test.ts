import { describe, expect, test } from 'vitest'
import type { EventDraft, EventType } from '../../src/contract/events/event.ts'
import type { Status, StopReason } from '../../src/contract/events/status.ts'
import { EVENT_VERSION } from '../../src/contract/events/event.ts'
import { Status as StatusSchema, StopReason as StopReasonSchema } from '../../src/contract/events/status.ts'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import type { State } from '../../src/state/state.ts'
import { gatedCalls } from '../../src/state/state.ts'
import { hashInput } from '../../src/policy/rules/input-hash.ts'
import {
  START_MS,
  answered,
  asked,
  clientRequestId,
  DEADLINE_MS,
  decided,
  folded,
  handedOver,
  questionId,
  questioned,
  requestId,
  runId,
  sentByClient,
  status,
  toolResult,
  toolUse,
  userMessage,
} from '../conversations/events.ts'
import { questionsOf } from '../../src/state/open-requests.ts'
import { expectReviewed } from './reviewed-events.ts'

const STATUSES = StatusSchema.options
const HASH = 'a'.repeat(64)
/** Every status, and what a pause can have cut off: a turn whose calls have not begun, or wait for a decision, or have it. */
const SITUATIONS = [
  ...STATUSES,
  'paused, in a turn',
  'paused, undecided',
  'paused, decided',
  'paused, asked',
  'two questions',
  'paused, at a client',
  'paused, sent by a client',
] as const
type Situation = (typeof SITUATIONS)[number]
const AT_REST = ['idle', 'paused', 'finished', 'error', 'cancelled'] as const satisfies Status[]
const newRunId = '018f0000-0000-7000-8000-00000000000c'
const now = START_MS + 60_000

/** A conversation whose run has come to this status. A run that is active has more to do. */
const inStatus = (to: Status, ...more: EventDraft[]) => {
  const asked = to === 'running' ? [answered({ calls: ['a'] }), toolUse('a'), toolResult('a')] : []
  const said = to === 'running' ? [] : [answered({ text: 'one' })]
  return folded([userMessage('go', true), status('running'), ...asked, ...said, status(to, 'running'), ...more])
}

const enqueue = folded([
  userMessage('go', true),
  status('running'),
  answered({ calls: ['a', 'b'] }),
  toolUse('a'),
  toolUse('b'),
])
const waiting = folded([asked(['a', 'b']), status('waiting_for_confirmation', 'running')], enqueue)
/** `a` asks, `b` comes after it. */
const asking = folded([questioned('a'), status('waiting_for_input', 'running')], enqueue)
/** A client executes `a`, and `b` comes after it. */
const atClient = folded([handedOver('a'), status('waiting_for_client', 'running')], enqueue)
const pausedAtClient = folded([status('paused', 'waiting_for_client')], atClient)
const pausedMidTurn = folded([status('paused', 'running')], enqueue)
const pausedUndecided = folded([status('paused', 'waiting_for_confirmation')], waiting)

function inSituation(situation: Situation): State {
  switch (situation) {
    case 'waiting_for_confirmation':
      return waiting
    case 'waiting_for_input':
      return asking
    case 'paused, asked':
      return folded([status('paused', 'waiting_for_input')], asking)
    case 'waiting_for_client':
      return atClient
    case 'paused, at a client':
      return pausedAtClient
    case 'paused, sent by a client':
      return folded([sentByClient('a')], pausedAtClient)
    case 'two questions':
      return folded([questioned('a'), questioned('b', newRunId), status('waiting_for_input', 'running')], enqueue)
    case 'paused, in a turn':
      return pausedMidTurn
    case 'paused, undecided':
      return pausedUndecided
    case 'paused, decided':
      return folded([decided('a'), decided('b')], pausedUndecided)
    default:
      return inStatus(situation)
  }
}

function typesOf(outcome: EventDraft[] | Problem): EventType[] {
  if (outcome instanceof Problem) throw outcome
  return outcome.map((draft) => draft.type)
}

const decision = (tool_use_id: string, behavior: 'allow' | 'deny' = 'allow') => {
  return { tool_use_id, input_hash: hashInput('Bash', { command: 'true' }), behavior } as const
}

const intentOf = {
  message: { kind: 'message', content: [{ type: 'text', text: 'yes' }], run: false, begun: [], newRunId, now },
  'message with run': {
    kind: 'message',
    content: [{ type: 'text', text: 'yes' }],
    run: true,
    begun: [],
    newRunId,
    now,
  },
  run: { kind: 'run', newRunId },
  pause: { kind: 'pause', reason: 'pause', interrupt: false, begun: [], now },
  'pause with interrupt': { kind: 'pause', reason: 'pause', interrupt: true, begun: [], now },
  configure: { kind: 'configure', changes: { title: 'new' } },
  'configure the mode': { kind: 'configure', changes: { confirmation_mode: false } },
  'configure the workdir': { kind: 'configure', changes: { workdir: '/other' } },
  ask: { kind: 'request_permission', runId, requestId, toolUses: [] },
  'allow one': { kind: 'decide', requestId, decisions: [decision('a')] },
  'allow all': { kind: 'decide', requestId, decisions: [decision('b'), decision('a')] },
  'deny all': { kind: 'decide', requestId, decisions: [decision('a', 'deny'), decision('b', 'deny')] },
  'decide another request': { kind: 'decide', requestId: newRunId, decisions: [decision('a')] },
  'ask the user': { kind: 'request_answers', runId, calls: [{ questionId, toolUseId: 'a', questions: [] }] },
  answer: { kind: 'answer', questionId, answers: { 'Go on?': ['Yes'] } },
  'answer another question': { kind: 'answer', questionId: requestId, answers: {} },
  'send the result': {
    kind: 'answer_held',
    requestId: clientRequestId,
    answer: { kind: 'client_tool', answer: { output: 'found', is_error: false } },
  },
  expire: { kind: 'expire', now: DEADLINE_MS },
  'expire too early': { kind: 'expire', now: DEADLINE_MS - 1 },
  'wait outside': { kind: 'await_outside', runId },
  reject: { kind: 'reject', reason: '', newRunId, now },
  recover: { kind: 'recover', why: 'server_restart', newRunId, now },
} as const satisfies Record<string, Intent>

type Outcome = { events: EventType[]; to: Status } | ProblemCode

const SUPERSEDED: EventType[] = ['RequestClosed', 'ToolResult', 'ToolResult']
const INTERRUPTED: EventType[] = ['ToolResult', 'ToolResult']
const UNANSWERED: EventType[] = ['RequestClosed', 'ToolResult', 'ToolResult']
const BOTH_UNANSWERED: EventType[] = ['RequestClosed', 'ToolResult', 'RequestClosed', 'ToolResult']
const DECIDED: EventType[] = ['RequestAnswered']
const DENIED: EventType[] = ['RequestAnswered', 'ToolResult', 'ToolResult']

/** Intent -> situation before -> the types of the events and the status after, or the problem. */
const TABLE: Record<keyof typeof intentOf, Record<Situation, Outcome>> = {
  message: {
    ...each(AT_REST, (from) => ({ events: ['UserMessage'], to: from })),
    running: { events: ['UserMessage'], to: 'running' },
    waiting_for_confirmation: { events: [...SUPERSEDED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'idle' },
    waiting_for_input: { events: [...UNANSWERED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'idle' },
    'two questions': { events: [...BOTH_UNANSWERED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'idle' },
    'paused, asked': { events: [...UNANSWERED, 'UserMessage'], to: 'paused' },
    'paused, in a turn': { events: [...INTERRUPTED, 'UserMessage'], to: 'paused' },
    'paused, undecided': { events: [...SUPERSEDED, 'UserMessage'], to: 'paused' },
    'paused, decided': { events: [...INTERRUPTED, 'UserMessage'], to: 'paused' },
    waiting_for_client: { events: ['UserMessage'], to: 'waiting_for_client' },
    'paused, at a client': { events: ['ToolResult', 'UserMessage'], to: 'paused' },
    'paused, sent by a client': { events: ['ToolResult', 'UserMessage'], to: 'paused' },
  },
  'message with run': {
    ...each(AT_REST, () => ({ events: ['UserMessage', 'StatusUpdate'], to: 'running' })),
    running: { events: ['UserMessage'], to: 'running' },
    waiting_for_confirmation: { events: [...SUPERSEDED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'running' },
    waiting_for_input: { events: [...UNANSWERED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'running' },
    'two questions': { events: [...BOTH_UNANSWERED, 'Result', 'UserMessage', 'StatusUpdate'], to: 'running' },
    'paused, asked': { events: [...UNANSWERED, 'UserMessage', 'StatusUpdate'], to: 'running' },
    'paused, in a turn': { events: [...INTERRUPTED, 'UserMessage', 'StatusUpdate'], to: 'running' },
    'paused, undecided': { events: [...SUPERSEDED, 'UserMessage', 'StatusUpdate'], to: 'running' },
    'paused, decided': { events: [...INTERRUPTED, 'UserMessage', 'StatusUpdate'], to: 'running' },
    waiting_for_client: { events: ['UserMessage'], to: 'waiting_for_client' },
    'paused, at a client': { events: ['ToolResult', 'UserMessage', 'StatusUpdate'], to: 'running' },
    'paused, sent by a client': { events: ['ToolResult', 'UserMessage', 'StatusUpdate'], to: 'running' },
  },
  run: {
    ...each(AT_REST, () => ({ events: ['StatusUpdate'], to: 'running' })),
    running: 'already_running',
    waiting_for_confirmation: 'waiting_for_confirmation',
    waiting_for_input: 'waiting_for_input',
    'two questions': 'waiting_for_input',
    'paused, asked': { events: ['StatusUpdate'], to: 'waiting_for_input' },
    'paused, in a turn': { events: ['StatusUpdate'], to: 'running' },
    'paused, undecided': { events: ['StatusUpdate'], to: 'waiting_for_confirmation' },
    'paused, decided': { events: ['StatusUpdate'], to: 'running' },
    waiting_for_client: 'waiting_for_client',
    'paused, at a client': { events: ['StatusUpdate'], to: 'waiting_for_client' },
    'paused, sent by a client': { events: ['StatusUpdate'], to: 'running' },
  },
  pause: {
    ...each(AT_REST, (from) => ({ events: [], to: from })),
    running: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_confirmation: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_input: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    'two questions': { events: ['Result', 'StatusUpdate'], to: 'paused' },
    'paused, asked': { events: [], to: 'paused' },
    'paused, in a turn': { events: [], to: 'paused' },
    'paused, undecided': { events: [], to: 'paused' },
    'paused, decided': { events: [], to: 'paused' },
    waiting_for_client: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    'paused, at a client': { events: [], to: 'paused' },
    'paused, sent by a client': { events: [], to: 'paused' },
  },
  'pause with interrupt': {
    ...each(AT_REST, (from) => ({ events: [], to: from })),
    running: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_confirmation: { events: [...SUPERSEDED, 'Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_input: { events: [...UNANSWERED, 'Result', 'StatusUpdate'], to: 'paused' },
    'two questions': { events: [...BOTH_UNANSWERED, 'Result', 'StatusUpdate'], to: 'paused' },
    'paused, asked': { events: UNANSWERED, to: 'paused' },
    'paused, in a turn': { events: INTERRUPTED, to: 'paused' },
    'paused, undecided': { events: SUPERSEDED, to: 'paused' },
    'paused, decided': { events: INTERRUPTED, to: 'paused' },
    waiting_for_client: { events: [...UNANSWERED, 'Result', 'StatusUpdate'], to: 'paused' },
    'paused, at a client': { events: UNANSWERED, to: 'paused' },
    'paused, sent by a client': { events: INTERRUPTED, to: 'paused' },
  },
  configure: each(SITUATIONS, (from) => ({ events: ['ConfigUpdate'], to: statusIn(from) })),
  'configure the mode': each(SITUATIONS, (from) => ({ events: ['ConfigUpdate'], to: statusIn(from) })),
  'configure the workdir': {
    ...each(SITUATIONS, (from) => ({ events: ['ConfigUpdate'], to: statusIn(from) })),
    running: 'conversation_running',
    waiting_for_confirmation: 'conversation_running',
    waiting_for_input: 'conversation_running',
    'two questions': 'conversation_running',
    'paused, asked': 'conversation_running',
    'paused, in a turn': 'conversation_running',
    'paused, undecided': 'conversation_running',
    'paused, decided': 'conversation_running',
    waiting_for_client: 'conversation_running',
    'paused, at a client': 'conversation_running',
    'paused, sent by a client': 'conversation_running',
  },
  ask: {
    ...each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
    running: { events: ['RequestOpened', 'StatusUpdate'], to: 'waiting_for_confirmation' },
  },
  'allow one': {
    ...each(SITUATIONS, () => 'request_not_found'),
    waiting_for_confirmation: { events: ['RequestAnswered'], to: 'waiting_for_confirmation' },
    'paused, undecided': { events: ['RequestAnswered'], to: 'paused' },
    'paused, decided': { events: [], to: 'paused' },
  },
  'allow all': {
    ...each(SITUATIONS, () => 'request_not_found'),
    waiting_for_confirmation: { events: [...DECIDED, 'StatusUpdate'], to: 'running' },
    'paused, undecided': { events: DECIDED, to: 'paused' },
    'paused, decided': { events: [], to: 'paused' },
  },
  'deny all': {
    ...each(SITUATIONS, () => 'request_not_found'),
    waiting_for_confirmation: { events: [...DENIED, 'StatusUpdate'], to: 'running' },
    'paused, undecided': { events: DENIED, to: 'paused' },
    'paused, decided': 'already_answered',
  },
  'decide another request': each(SITUATIONS, () => 'request_not_found'),
  'ask the user': {
    ...each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
    running: { events: ['RequestOpened', 'StatusUpdate'], to: 'waiting_for_input' },
  },
  answer: {
    ...each(SITUATIONS, () => 'request_not_found'),
    waiting_for_input: { events: ['RequestAnswered', 'ToolResult', 'StatusUpdate'], to: 'running' },
    'two questions': { events: ['RequestAnswered', 'ToolResult'], to: 'waiting_for_input' },
    'paused, asked': { events: ['RequestAnswered', 'ToolResult'], to: 'paused' },
  },
  'answer another question': each(SITUATIONS, () => 'request_not_found'),
  'send the result': {
    ...each(SITUATIONS, () => 'request_not_found'),
    waiting_for_client: { events: ['RequestAnswered', 'StatusUpdate'], to: 'running' },
    'paused, at a client': { events: ['RequestAnswered'], to: 'paused' },
  },
  expire: {
    ...each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
    waiting_for_client: { events: ['RequestClosed', 'StatusUpdate'], to: 'running' },
    'paused, at a client': { events: ['RequestClosed'], to: 'paused' },
  },
  'expire too early': each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
  'wait outside': each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
  reject: {
    ...each(SITUATIONS, () => 'nothing_pending'),
    waiting_for_input: { events: [...UNANSWERED, 'Result', 'StatusUpdate'], to: 'idle' },
    'two questions': { events: [...BOTH_UNANSWERED, 'Result', 'StatusUpdate'], to: 'idle' },
    'paused, asked': { events: UNANSWERED, to: 'paused' },
    waiting_for_confirmation: { events: [...DENIED, 'Result', 'StatusUpdate'], to: 'idle' },
    'paused, undecided': { events: DENIED, to: 'paused' },
  },
  recover: {
    ...each(SITUATIONS, (from) => ({ events: [], to: statusIn(from) })),
    running: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    'paused, in a turn': { events: INTERRUPTED, to: 'paused' },
  },
}

function statusIn(situation: Situation): Status {
  return inSituation(situation).status
}

function each<S extends Situation>(situations: readonly S[], make: (situation: S) => Outcome): Record<S, Outcome> {
  return Object.fromEntries(situations.map((situation) => [situation, make(situation)])) as Record<S, Outcome>
}

describe.each(Object.entries(TABLE) as [keyof typeof intentOf, (typeof TABLE)['run']][])('%s', (name, row) => {
  test.each(SITUATIONS)('while %s', (from) => {
    const before = inSituation(from)
    const outcome = decide(before, intentOf[name])
    const expected = row[from]
    if (typeof expected === 'string') return expect(outcome).toMatchObject({ code: expected })
    expect(typesOf(outcome)).toEqual(expected.events)
    const after = folded(outcome as EventDraft[], before)
    expect(after.status).toBe(expected.to)
    const starts = typesOf(outcome).includes('StatusUpdate') && intentOf[name].kind in { run: 1, message: 1 }
    expect(after.run?.id).toBe(after.run && (starts ? newRunId : runId))
  })
})

test('a run that is cut off while a client executes its call waits for the client', () => {
  const before = folded([handedOver('a')], enqueue)
  const outcome = decide(before, intentOf.recover)
  expect(typesOf(outcome)).toEqual(['StatusUpdate'])
  const after = folded(outcome as EventDraft[], before)
  expect(after).toMatchObject({ status: 'waiting_for_client', run: { id: runId } })
  expect(after.openCalls.map(({ toolUseId }) => toolUseId)).toEqual(['a', 'b'])
})

test('what a client has sent before a crash is the result of its call', () => {
  const before = folded([handedOver('a'), sentByClient('a')], enqueue)
  const outcome = decide(before, intentOf.recover) as EventDraft[]
  expect(typesOf(outcome)).toEqual(['ToolResult', 'ToolResult', 'Result', 'StatusUpdate'])
  expect(outcome[0]).toMatchObject({ tool_use_id: 'a', output: 'found', is_error: false })
})

test('the loop stops for a client only while one executes a call', () => {
  const waits = folded([handedOver('a')], enqueue)
  const [update] = decide(waits, intentOf['wait outside']) as EventDraft[]
  expect(update).toMatchObject({ status: 'waiting_for_client', run_id: runId, reason: 'client_tool' })
  expect(decide(folded([sentByClient('a')], waits), intentOf['wait outside'])).toEqual([])
})

test('each StatusUpdate contains the status it follows', () => {
  for (const from of SITUATIONS) {
    for (const intent of Object.values(intentOf)) {
      const before = inSituation(from)
      const outcome = decide(before, intent)
      if (outcome instanceof Problem) continue
      for (const draft of outcome) if (draft.type === 'StatusUpdate') expect(draft.previous_status).toBe(before.status)
    }
  }
})

test('a run that ends or stops waiting has one Result, and one that continues has none', () => {
  for (const from of SITUATIONS) {
    for (const intent of Object.values(intentOf)) {
      const before = inSituation(from)
      const outcome = decide(before, intent)
      if (outcome instanceof Problem) continue
      const isOver = before.run !== undefined && folded(outcome, before).run?.id !== before.run.id
      expect(outcome.filter((draft) => draft.type === 'Result')).toHaveLength(isOver ? 1 : 0)
    }
  }
})

test('only an `allow` lets a call of the turn run', () => {
  for (const from of ['waiting_for_confirmation', 'paused, undecided'] as const) {
    for (const [name, intent] of Object.entries(intentOf)) {
      const outcome = decide(inSituation(from), intent)
      const after = outcome instanceof Problem ? inSituation(from) : folded(outcome, inSituation(from))
      const approved = gatedCalls(after).filter((call) => call.approved)
      expect(approved.length, name).toBe(name === 'allow one' ? 1 : name === 'allow all' ? 2 : 0)
    }
  }
})

describe('events of another version', () => {
  const newer: State = { ...inStatus('idle'), version: EVENT_VERSION + 1 }

  test.each(['message', 'message with run', 'run'] as const)('%s is refused, saying why', (name) => {
    expect(decide(newer, intentOf[name])).toMatchObject({
      code: 'conversation_from_newer_version',
      message: expect.stringContaining('newer version'),
    })
  })

  test('pausing and recovering it are still possible', () => {
    expect(typesOf(decide({ ...newer, ...inStatus('running'), version: 2 }, intentOf.pause))).toEqual([
      'Result',
      'StatusUpdate',
    ])
  })
})

describe('refusals', () => {
  test('a running conversation reports the active run', () => {
    expect(decide(inStatus('running'), intentOf.run)).toMatchObject({
      code: 'already_running',
      details: { run_id: runId },
    })
  })

  test('a waiting one lists what is pending: running is never an approval', () => {
    const half = folded([decided('b')], waiting)
    expect(decide(half, intentOf.run)).toMatchObject({
      details: { request_id: requestId, pending: [{ tool_use_id: 'a', name: 'Bash' }] },
    })
  })

  test('the workdir stays while a call that a pause left running is not over', () => {
    const paused = folded([status('running'), answered({ calls: ['a'] }), toolUse('a'), status('paused', 'running')])
    expect(decide(paused, intentOf['configure the workdir'])).toMatchObject({ code: 'conversation_running' })
    expect(typesOf(decide(folded([toolResult('a')], paused), intentOf['configure the workdir']))).toEqual([
      'ConfigUpdate',
    ])
  })

  test('a configuration that changes nothing stores nothing', () => {
    expect(decide(inStatus('idle'), { kind: 'configure', changes: {} })).toEqual([])
  })
})

test('a message supersedes what waits for a decision: it is rejected, never approved, including calls already allowed', () => {
  for (const name of ['message', 'message with run'] as const) {
    const before = folded([decided('a')], waiting)
    const outcome = decide(before, intentOf[name]) as EventDraft[]
    expect(outcome.slice(0, 3)).toMatchObject([
      { type: 'RequestClosed', kind: 'permission', tool_use_ids: ['b'], reason: 'message' },
      { type: 'ToolResult', tool_use_id: 'a', is_error: true, error_type: 'rejected' },
      { type: 'ToolResult', tool_use_id: 'b', is_error: true, error_type: 'rejected' },
    ])
    expect(outcome[3]).toMatchObject({ type: 'Result', run_id: runId, stop_reason: 'superseded' })
    expect(folded(outcome, before)).toMatchObject({ openCalls: [], request: undefined })
  }
})

test('a message closes what the agent has asked: the result says that the user wrote instead of answering', () => {
  for (const [from, error_type] of [
    ['waiting_for_input', 'rejected'],
    ['paused, asked', 'interrupted'],
  ] as const) {
    const before = inSituation(from)
    const outcome = decide(before, intentOf.message) as EventDraft[]
    expect(outcome.slice(0, 3)).toMatchObject([
      { type: 'RequestClosed', kind: 'question', request_id: questionId, tool_use_ids: ['a'], reason: 'message' },
      { tool_use_id: 'a', error_type, output: expect.stringContaining('wrote a message instead of answering') },
      { tool_use_id: 'b', error_type, output: expect.stringContaining('it did not run') },
    ])
    expect(folded(outcome, before)).toMatchObject({ openCalls: [], requests: [] })
  }
})

test('what waits for an answer, or was answered while paused, is left alone by a recovery: it has not begun', () => {
  const before = inSituation('paused, asked')
  expect(decide(before, intentOf.recover)).toEqual([])
  const ready = folded(decide(before, intentOf.answer) as EventDraft[], before)
  expect(decide(ready, intentOf.recover)).toEqual([])
  const begun = folded([status('running', 'paused'), status('paused', 'running')], ready)
  expect(typesOf(decide(begun, intentOf.recover)), 'but not what may have begun since').toEqual(['ToolResult'])
})

describe('an answer', () => {
  test('is the result of the call that asked, with what was not answered', () => {
    const before = inSituation('waiting_for_input')
    const [question] = questionsOf(before)
    const { questions } = question!.payload
    const more = { ...questions[0]!, question: 'And "then"?' }
    const state = { ...before, requests: [{ ...question!, payload: { questions: [...questions, more] } }] }
    const outcome = decide(state, { ...intentOf.answer, answers: { 'Go on?': ['Yes', 'a\nb'] } }) as EventDraft[]
    expect(outcome[1]).toMatchObject({
      type: 'ToolResult',
      tool_use_id: 'a',
      run_id: runId,
      is_error: false,
      output: `User has answered your questions: "Go on?"="Yes, a\\nb", "And \\"then\\"?"=(not answered). You can now continue with the user's answers in mind.`,
    })
  })

  test('continues the run that asked; the time until then does not count', () => {
    const before = inSituation('waiting_for_input')
    const after = folded(decide(before, intentOf.answer) as EventDraft[], { ...before, lastSeq: 1000 })
    expect(after.run?.id).toBe(runId)
    expect(after.run?.activeMs).toBe(before.run?.activeMs)
    expect(Date.parse(after.run!.activeSince)).toBeGreaterThan(START_MS + 1000 * 1000)
  })

  test('in a pause leaves the rest of the turn for the next run', () => {
    const before = inSituation('paused, asked')
    const after = folded(decide(before, intentOf.answer) as EventDraft[], before)
    expect(after).toMatchObject({ status: 'paused', requests: [], openCalls: [{ toolUseId: 'b' }] })
    expect(decide(after, intentOf.run)).toMatchObject([{ status: 'running' }])
  })
})

describe('a call of a paused turn', () => {
  const interrupting = ['message', 'message with run', 'pause with interrupt'] as const

  test.each(interrupting)('that has not begun never runs after a %s; the others keep their place', (name) => {
    const outcome = decide(pausedMidTurn, { ...intentOf[name], begun: ['a'] }) as EventDraft[]
    const results = outcome.filter((draft) => draft.type === 'ToolResult')
    expect(results).toMatchObject([{ tool_use_id: 'b', run_id: runId, is_error: true, error_type: 'interrupted' }])
    expect(folded(outcome, pausedMidTurn).openCalls).toMatchObject([{ toolUseId: 'a' }])
  })

  test.each(['message', 'message with run'] as const)('has its result before the %s', (name) => {
    expect(typesOf(decide(pausedMidTurn, intentOf[name])).slice(0, 3)).toEqual([...INTERRUPTED, 'UserMessage'])
  })

  test.each(interrupting)(
    'that waits for a decision, or has one, is interrupted by a %s and never approved',
    (name) => {
      for (const before of [pausedUndecided, inSituation('paused, decided')]) {
        const after = folded(decide(before, intentOf[name]) as EventDraft[], before)
        expect(after).toMatchObject({ openCalls: [], request: undefined })
      }
    },
  )

  test('is not touched by a message while the run is at work: the model reads it at the end of the turn', () => {
    expect(typesOf(decide(enqueue, intentOf.message))).toEqual(['UserMessage'])
  })
})

describe('the end of a run', () => {
  const end = (stopReason: StopReason, requestedAt = 100): Intent => ({
    kind: 'end_run',
    runId,
    stopReason,
    requestedAt,
    begun: [],
    newRunId,
    now,
  })
  const running = folded([userMessage('go', true), status('running'), answered({ text: 'one' })])

  test.each(StopReasonSchema.options)('%s: one Result, then the status it leads to', (stopReason) => {
    const outcome = decide(running, end(stopReason)) as EventDraft[]
    expect(outcome).toMatchObject([
      { type: 'Result', run_id: runId, stop_reason: stopReason, final_text: 'one', steps: 1, duration_ms: 58_000 },
      { type: 'StatusUpdate', run_id: runId, previous_status: 'running', reason: stopReason },
    ])
    expect(folded(outcome, running).run).toBeUndefined()
  })

  test('the text of Finish is the final text; without one, the last message is', () => {
    const said = (finalText: string) =>
      (decide(running, { ...end('finished'), finalText } as Intent) as EventDraft[])[0]
    expect(said('All done.')).toMatchObject({ type: 'Result', stop_reason: 'finished', final_text: 'All done.' })
    expect(said('')).toMatchObject({ final_text: 'one' })
  })

  test('a failure is reported before the Result', () => {
    const failure = { type: 'network', message: 'It broke.', retryable: true } as const
    expect(decide(running, { ...end('error'), failure } as Intent)).toMatchObject([
      { type: 'ErrorEvent', run_id: runId, error_type: 'network', message: 'It broke.', retryable: true },
      { type: 'Result', stop_reason: 'error' },
      { type: 'StatusUpdate', status: 'error' },
    ])
  })

  test('a time limit cancels what has not begun; after another end `run` continues with it', () => {
    const outcome = decide(enqueue, { ...end('time_limit'), begun: ['a'] } as Intent) as EventDraft[]
    expect(outcome[0]).toMatchObject({ type: 'ToolResult', tool_use_id: 'b', error_type: 'interrupted' })
    expect(typesOf(outcome)).toEqual(['ToolResult', 'Result', 'StatusUpdate'])
    expect(typesOf(decide(enqueue, end('error')))).toEqual(['Result', 'StatusUpdate'])
  })

  test('a message that gets a separate run is read before what the ended run has left', () => {
    const unread = folded([userMessage('stop that', true)], enqueue)
    const outcome = decide(unread, end('error', enqueue.lastSeq)) as EventDraft[]
    expect(typesOf(outcome)).toEqual([...INTERRUPTED, 'Result', 'StatusUpdate', 'StatusUpdate'])
  })

  describe('with an unread message that asked for a run', () => {
    const unread = folded([userMessage('and then?', true)], running)
    const requestedAt = running.lastSeq

    test.each(['completed', 'finished'] as const)('%s: the run continues', (stopReason) => {
      expect(decide(unread, end(stopReason, requestedAt))).toEqual([])
    })

    test.each(['max_steps', 'iteration_limit', 'time_limit', 'error'] as const)(
      '%s: the run ends, and the message gets a separate one',
      (stopReason) => {
        const outcome = decide(unread, end(stopReason, requestedAt)) as EventDraft[]
        expect(typesOf(outcome)).toEqual(['Result', 'StatusUpdate', 'StatusUpdate'])
        expect(outcome.at(-1)).toMatchObject({
          status: 'running',
          run_id: newRunId,
          reason: 'message',
          previous_status: (outcome.at(-2) as { status: Status }).status,
        })
      },
    )

    test('a message that did not ask for a run ends nothing and starts nothing', () => {
      const noted = folded([userMessage('by the way')], running)
      expect(typesOf(decide(noted, end('completed', requestedAt)))).toEqual(['Result', 'StatusUpdate'])
    })
  })

  describe('while calls wait, with a message during the model call that asked for a run', () => {
    const unread = folded([
      userMessage('go', true),
      status('running'),
      userMessage('and then?', true),
      { ...answered({ calls: ['a'] }), read_through: 2 },
      toolUse('a'),
      asked(['a']),
      status('waiting_for_confirmation', 'running'),
    ])

    test.each(['reject', 'message'] as const)('%s: the run ends, and the message gets a separate one', (name) => {
      const outcome = decide(unread, intentOf[name]) as EventDraft[]
      expect(outcome.slice(-2)).toMatchObject([
        { type: 'StatusUpdate', status: 'idle' },
        { type: 'StatusUpdate', status: 'running', previous_status: 'idle', reason: 'message', run_id: newRunId },
      ])
    })

    test('a message that the model has read gets none', () => {
      const { readThrough, runRequestedAt } = waiting
      expect(readThrough).toBeGreaterThan(runRequestedAt)
      expect(folded(decide(waiting, intentOf.reject) as EventDraft[], waiting).status).toBe('idle')
    })
  })

  describe('of a run that made no model request', () => {
    const begun = folded([userMessage('go', true), status('running')])

    test('a failure ends it: the message that started it does not start it again and again', () => {
      expect(typesOf(decide(begun, end('error', 0)))).toEqual(['Result', 'StatusUpdate'])
    })

    test('failing runs that subagents start end, too: after 20 in a row the next waits for the user', () => {
      const unread = (runsInARow: number) => ({ ...begun, runsInARow, runRequestedAt: begun.lastSeq + 1 })
      expect(typesOf(decide(unread(20), end('error', 0)))).toEqual(['Result', 'StatusUpdate', 'StatusUpdate'])
      expect(typesOf(decide(unread(21), end('error', 0)))).toEqual(['Result', 'StatusUpdate'])
      expect(begun.runsInARow).toBe(1)
      expect(folded([userMessage('more')], unread(21)).runsInARow).toBe(0)
    })

    test('a message that came after its start gets a separate run', () => {
      expect(typesOf(decide(folded([userMessage('more', true)], begun), end('error', 0)))).toEqual([
        'Result',
        'StatusUpdate',
        'StatusUpdate',
      ])
    })

    test('a tool that finishes does not: the message that started it has not been read', () => {
      expect(decide(begun, end('finished', 0))).toEqual([])
    })

    test('a tool that finishes after a wait ends it: the model had read the message before', () => {
      expect(typesOf(decide(running, end('finished', 0)))).toEqual(['Result', 'StatusUpdate'])
    })
  })
})

describe('recovery', () => {
  const cutOff = folded([
    status('running'),
    answered({ calls: ['a', 'b'] }),
    toolUse('a'),
    toolUse('b'),
    toolResult('a'),
  ])

  test('reports each interrupted call as such, and pauses the run with its Result', () => {
    const outcome = decide(cutOff, intentOf.recover) as EventDraft[]
    expect(outcome).toMatchObject([
      { type: 'ToolResult', tool_use_id: 'b', run_id: runId, is_error: true, error_type: 'interrupted' },
      { type: 'Result', run_id: runId, stop_reason: 'server_restart', steps: 1 },
      { type: 'StatusUpdate', status: 'paused', reason: 'server_restart' },
    ])
    expect(decide(folded(outcome, cutOff), intentOf.recover), 'a second time there is nothing to do').toEqual([])
  })

  test('distinguishes the call that may have begun from those that cannot have: calls run one after the other', () => {
    expect(decide(pausedMidTurn, intentOf.recover)).toMatchObject([
      { tool_use_id: 'a', output: expect.stringContaining('not known') },
      { tool_use_id: 'b', output: expect.stringContaining('did not run') },
    ])
  })

  test('answers a call that a pause had left running', () => {
    const paused = folded([status('paused', 'running')], cutOff)
    expect(typesOf(decide(paused, intentOf.recover))).toEqual(['ToolResult'])
  })

  test('leaves alone what waits for a decision, or was decided while paused: it has not run', () => {
    expect(decide(waiting, intentOf.recover)).toEqual([])
    const ready = inSituation('paused, decided')
    expect(decide(ready, intentOf.recover)).toEqual([])
    const begun = folded([status('running', 'paused'), status('paused', 'running')], ready)
    expect(typesOf(decide(begun, intentOf.recover)), 'but not what may have begun since').toEqual([
      'ToolResult',
      'ToolResult',
    ])
  })
})

test('each event of an intent is valid, and says what was reviewed', async () => {
  const target = { lastOutputs: {}, forgotten: undefined, contextTokens: 7 }
  const closed = { requests: [], tasks: [], subagents: [] }
  const restored = { snapshot_id: requestId, changed: 1, removed: 2, failed: 3 }
  const more = {
    rewind: { kind: 'rewind', toSeq: 1, target, closed, processesLeft: 0, by: 'ada' },
    'restore the files': { kind: 'files_restored', toSeq: 1, restored },
    'recover from a failed log': { kind: 'recover', why: 'log_failed', newRunId, now },
    'hand over': { kind: 'hand_over', begun: ['a'], running: { sessions: ['main'], commandLines: ['sleep 1'] } },
    'client event': { kind: 'client_event', name: 'opened', data: { a: 1 }, idempotency: { key: 'k', bodyHash: HASH } },
  } as const satisfies Record<string, Intent>
  await expectReviewed('intents', { ...intentOf, ...more }, SITUATIONS, inSituation)
})

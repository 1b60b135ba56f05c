import { describe, expect, test } from 'vitest'
import type { EventDraft, EventType } from '../../src/contract/events/event.ts'
import type { Status, StopReason } from '../../src/contract/events/status.ts'
import { EVENT_VERSION } from '../../src/contract/events/event.ts'
import { Status as StatusSchema, StopReason as StopReasonSchema } from '../../src/contract/events/status.ts'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Runnable, TaskStatus } from '../../src/contract/values/task.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import type { State } from '../../src/state/state.ts'
import { MAX_COMMANDS, MAX_OPEN_TASKS, currentTask, nextTasks } from '../../src/state/task-state.ts'
import {
  START_MS,
  answered,
  asked,
  conversationId,
  folded,
  questioned,
  requestId,
  runId,
  status,
  toolResult,
  toolUse,
  userMessage,
} from '../conversations/events.ts'
import { expectReviewed } from './reviewed-events.ts'

const STATUSES = StatusSchema.options
const newRunId = '018f0000-0000-7000-8000-00000000000c'
const now = START_MS + 60_000
const ids = {
  current: '018f0000-0000-7000-8000-0000000000a1',
  queued: '018f0000-0000-7000-8000-0000000000a2',
  job: '018f0000-0000-7000-8000-0000000000a3',
}

const agentRun = (text = 'do it'): Runnable => ({
  type: 'AgentRun',
  message: { role: 'user', content: [{ type: 'text', text }] },
})
const command: Runnable = { type: 'Command', command: 'true', timeout: 60 }
const ticker: Runnable = { type: 'Ticker', interval: 1, count: 3 }

type Update = Extract<EventDraft, { type: 'TaskUpdate' }>
const update = (task_id: string, to: TaskStatus, more: Partial<Update> = {}): Update => {
  return { type: 'TaskUpdate', source: 'environment', task_id, title: `task ${task_id}`, status: to, ...more }
}
const posted = (task_id: string, runnable: Runnable = agentRun()) => update(task_id, 'pending', { runnable })

/** A task of the agent has begun, a second waits behind it, and a job runs beside both. */
const begun = folded([
  posted(ids.current),
  update(ids.current, 'running', { run_id: runId }),
  userMessage('do it', true),
  status('running'),
  posted(ids.queued),
  posted(ids.job, command),
  update(ids.job, 'running'),
])

/** Where its run can have come to, with the task still at it. */
const SITUATIONS = [
  'running',
  'in a call',
  'waiting_for_confirmation',
  'waiting_for_input',
  'paused',
  'paused, undecided',
] as const
type Situation = (typeof SITUATIONS)[number]

const inCall = folded([answered({ calls: ['a', 'b'] }), toolUse('a'), toolUse('b')], begun)
const waiting = folded([asked(['a', 'b']), status('waiting_for_confirmation', 'running')], inCall)
const situations: Record<Situation, State> = {
  running: folded([answered({ text: 'so far', calls: ['a'] }), toolUse('a'), toolResult('a')], begun),
  'in a call': inCall,
  waiting_for_confirmation: waiting,
  waiting_for_input: folded([questioned('a'), status('waiting_for_input', 'running')], inCall),
  paused: folded([status('paused', 'running')], begun),
  'paused, undecided': folded([status('paused', 'waiting_for_confirmation')], waiting),
}

function outcomeOf(state: State, given: Intent): { types: string[]; state: State } | ProblemCode {
  const outcome = decide(state, given)
  if (outcome instanceof Problem) return outcome.code
  return { types: outcome.map(nameOf), state: folded(outcome, state) }
}

const nameOf = (draft: EventDraft) =>
  draft.type === 'TaskUpdate' ? `${keyOf(draft.task_id)} ${draft.status}` : draft.type
const keyOf = (id: string) => Object.entries(ids).find(([, each]) => each === id)?.[0] ?? id

const cancel = (taskId: string, begun: string[] = []) => {
  return { kind: 'cancel_task', taskId, begun, requestedAt: 0, newRunId, now } as const
}
const end = (stopReason: StopReason): Intent => {
  return { kind: 'end_run', runId, stopReason, requestedAt: 1000, begun: [], newRunId, now }
}
const message = (run: boolean): Intent => {
  return { kind: 'message', content: [{ type: 'text', text: 'no' }], run, begun: [], newRunId, now }
}

const COMMANDS = {
  'cancel the current one': cancel(ids.current),
  'cancel the queued one': cancel(ids.queued),
  'cancel the job': cancel(ids.job),
  pause: { kind: 'pause', reason: 'pause', interrupt: false, begun: [], now },
  run: { kind: 'run', newRunId },
  message: message(false),
  'message with run': message(true),
  reject: { kind: 'reject', reason: '', newRunId, now },
  'post a task': { kind: 'post_task', taskId: newRunId, title: 'more', runnable: agentRun() },
  'start the queued one': { kind: 'start_task', taskId: ids.queued, runnable: agentRun(), begun: [], newRunId },
  tick: { kind: 'tick_task', taskId: ids.job, progress: { done: 1, total: 2 } },
  'end the job': { kind: 'end_task', taskId: ids.job, status: 'completed' },
  'end the current one as a job': { kind: 'end_task', taskId: ids.current, status: 'completed' },
  recover: { kind: 'recover', why: 'server_restart', newRunId, now },
} as const satisfies Record<string, Intent>

const DENIED: EventType[] = ['RequestClosed', 'ToolResult', 'ToolResult']
const REJECTED: EventType[] = ['RequestAnswered', 'ToolResult', 'ToolResult']
const POSTED = `${newRunId} pending`
const each = (make: (situation: Situation) => Outcome) =>
  Object.fromEntries(SITUATIONS.map((situation) => [situation, make(situation)])) as Record<Situation, Outcome>
const unchanged = (...events: string[]) => each((from) => [events, situations[from].status, 'current'])

/** The events, the status after them, and which of the agent's tasks is the current one then. */
type Outcome = [events: string[], to: Status, current: 'current' | 'queued' | undefined] | ProblemCode

const TABLE: Record<keyof typeof COMMANDS, Record<Situation, Outcome>> = {
  'cancel the current one': {
    running: [['Result', 'current cancelled', 'StatusUpdate'], 'cancelled', undefined],
    'in a call': [['ToolResult', 'ToolResult', 'Result', 'current cancelled', 'StatusUpdate'], 'cancelled', undefined],
    waiting_for_confirmation: [[...DENIED, 'Result', 'current cancelled', 'StatusUpdate'], 'cancelled', undefined],
    waiting_for_input: [
      ['RequestClosed', 'ToolResult', 'ToolResult', 'Result', 'current cancelled', 'StatusUpdate'],
      'cancelled',
      undefined,
    ],
    paused: [['current cancelled', 'StatusUpdate'], 'cancelled', undefined],
    'paused, undecided': [[...DENIED, 'current cancelled', 'StatusUpdate'], 'cancelled', undefined],
  },
  'cancel the queued one': unchanged('queued cancelled'),
  'cancel the job': unchanged('job cancelled'),
  pause: {
    ...each((from) => [['Result', 'StatusUpdate'], 'paused', situations[from] && 'current']),
    paused: [[], 'paused', 'current'],
    'paused, undecided': [[], 'paused', 'current'],
  },
  run: {
    running: 'already_running',
    'in a call': 'already_running',
    waiting_for_confirmation: 'waiting_for_confirmation',
    waiting_for_input: 'waiting_for_input',
    paused: [['StatusUpdate'], 'running', 'current'],
    'paused, undecided': [['StatusUpdate'], 'waiting_for_confirmation', 'current'],
  },
  message: {
    ...unchanged('UserMessage'),
    waiting_for_confirmation: [
      [...DENIED, 'Result', 'current cancelled', 'UserMessage', 'StatusUpdate'],
      'idle',
      undefined,
    ],
    waiting_for_input: [
      ['RequestClosed', 'ToolResult', 'ToolResult', 'Result', 'current cancelled', 'UserMessage', 'StatusUpdate'],
      'idle',
      undefined,
    ],
    'paused, undecided': [[...DENIED, 'UserMessage'], 'paused', 'current'],
  },
  'message with run': {
    ...unchanged('UserMessage'),
    waiting_for_confirmation: [[...DENIED, 'Result', 'UserMessage', 'StatusUpdate'], 'running', 'current'],
    waiting_for_input: [
      ['RequestClosed', 'ToolResult', 'ToolResult', 'Result', 'UserMessage', 'StatusUpdate'],
      'running',
      'current',
    ],
    paused: [['UserMessage', 'StatusUpdate'], 'running', 'current'],
    'paused, undecided': [[...DENIED, 'UserMessage', 'StatusUpdate'], 'running', 'current'],
  },
  reject: {
    ...each(() => 'nothing_pending'),
    waiting_for_confirmation: [[...REJECTED, 'Result', 'current cancelled', 'StatusUpdate'], 'idle', undefined],
    waiting_for_input: [
      ['RequestClosed', 'ToolResult', 'ToolResult', 'Result', 'current cancelled', 'StatusUpdate'],
      'idle',
      undefined,
    ],
    'paused, undecided': [REJECTED, 'paused', 'current'],
  },
  'post a task': unchanged(POSTED),
  'start the queued one': unchanged(),
  tick: unchanged('job running'),
  'end the job': unchanged('job completed'),
  'end the current one as a job': unchanged(),
  recover: {
    ...unchanged('job error'),
    running: [['job error', 'Result', 'StatusUpdate'], 'paused', 'current'],
    'in a call': [['job error', 'ToolResult', 'ToolResult', 'Result', 'StatusUpdate'], 'paused', 'current'],
  },
}

describe.each(Object.entries(TABLE) as [keyof typeof COMMANDS, (typeof TABLE)['run']][])('%s', (name, row) => {
  test.each(SITUATIONS)('while the current one is %s', (from) => {
    const outcome = outcomeOf(situations[from], COMMANDS[name])
    const expected = row[from]
    if (typeof expected === 'string' || typeof outcome === 'string') return expect(outcome).toBe(expected)
    const current = currentTask(outcome.state)
    expect([outcome.types, outcome.state.status, current && keyOf(current.id)]).toEqual(expected)
    // A task and its run go together: whoever follows the one finds the other.
    if (current && outcome.state.run) expect(current.runId).toBe(outcome.state.run.id)
  })
})

test.each(StopReasonSchema.options)('a run that stops because of %s: its task', (stopReason) => {
  const expected: Record<StopReason, TaskStatus> = {
    completed: 'completed',
    finished: 'completed',
    error: 'error',
    iteration_limit: 'error',
    stuck: 'error',
    content_filter: 'error',
    hook: 'error',
    time_limit: 'error',
    budget_limit: 'error',
    token_limit: 'error',
    paused: 'running',
    max_steps: 'running',
    server_restart: 'running',
    owner_lost: 'running',
    rejected: 'cancelled',
    superseded: 'cancelled',
    cancelled: 'cancelled',
  }
  const to = expected[stopReason]
  const outcome = decide(situations.running, end(stopReason)) as EventDraft[]
  const ended = outcome.filter((draft) => draft.type === 'TaskUpdate')
  if (to === 'running') return expect(ended).toEqual([])
  expect(ended).toMatchObject([
    {
      task_id: ids.current,
      status: to,
      run_id: runId,
      result: { type: 'AgentRun', run_id: runId, final_text: 'so far' },
    },
  ])
  expect(ended[0]!.message, 'why, unless it is plain').toEqual(
    to === 'completed' ? undefined : expect.stringContaining(stopReason),
  )
})

test('the next of the agent’s tasks starts from every status but those in which the agent is busy, or was paused', () => {
  const startsFrom = STATUSES.filter((from) => {
    const state = folded([posted(ids.queued), status(from)])
    const outcome = decide(state, COMMANDS['start the queued one']) as EventDraft[]
    expect(nextTasks(state).length > 0).toBe(outcome.length > 0)
    if (outcome.length === 0) return false
    expect(outcome).toMatchObject([
      { type: 'TaskUpdate', task_id: ids.queued, status: 'running', run_id: newRunId },
      { type: 'UserMessage', task_id: ids.queued, run: true, run_id: newRunId },
      { type: 'StatusUpdate', status: 'running', previous_status: from, run_id: newRunId, reason: 'task' },
    ])
    return true
  })
  expect(startsFrom).toEqual(['idle', 'finished', 'error', 'cancelled'])
})

test('the agent’s tasks start in the order they were posted in, one at a time', () => {
  const first = folded([posted(ids.current), posted(ids.queued)])
  expect(nextTasks(first).map(({ id }) => keyOf(id))).toEqual(['current'])
  expect(decide(first, COMMANDS['start the queued one'])).toEqual([])
})

test('jobs do not wait for the agent: tickers start immediately, commands up to a limit', () => {
  const many = [...Array(MAX_COMMANDS + 1).keys()].map((n) => posted(`command ${n}`, command))
  const state = folded([status('running'), ...many, posted('ticker', ticker)])
  expect(nextTasks(state).map(({ id }) => id)).toEqual(['command 0', 'command 1', 'command 2', 'command 3', 'ticker'])
  const allRun = folded(
    many.slice(1).map(({ task_id }) => update(task_id, 'running')),
    state,
  )
  expect(nextTasks(allRun).map(({ id }) => id)).toEqual(['ticker'])
  const oneEnded = folded([update('command 1', 'completed')], allRun)
  expect(nextTasks(oneEnded).map(({ id }) => id)).toEqual(['command 0', 'ticker'])
})

test('a task that is over is neither ticked, ended nor cancelled once more', () => {
  const over = folded([update(ids.job, 'completed'), update(ids.queued, 'cancelled')], begun)
  for (const name of ['tick', 'end the job', 'cancel the job', 'cancel the queued one'] as const)
    expect(decide(over, COMMANDS[name]), name).toEqual([])
})

test('a call of a cancelled task that ignores the cancellation keeps its place: its own result will come', () => {
  const outcome = decide(inCall, cancel(ids.current, ['a'])) as EventDraft[]
  expect(outcome.filter((draft) => draft.type === 'ToolResult')).toMatchObject([
    { tool_use_id: 'b', error_type: 'interrupted' },
  ])
  expect(folded([toolResult('a')], folded(outcome, inCall)).openCalls).toEqual([])
})

test('a call cancelled while it waits for a decision is denied, never run', () => {
  const outcome = decide(waiting, cancel(ids.current)) as EventDraft[]
  expect(outcome[0]).toMatchObject({
    type: 'RequestClosed',
    kind: 'permission',
    request_id: requestId,
    tool_use_ids: ['a', 'b'],
    reason: 'interrupted',
  })
  expect(folded(outcome, waiting)).toMatchObject({ openCalls: [], request: undefined, status: 'cancelled' })
})

test('a run that continues a paused task is the run of that task', () => {
  const resumed = folded([{ ...status('running', 'paused'), run_id: newRunId }], situations.paused)
  expect(currentTask(resumed)).toMatchObject({ id: ids.current, runId: newRunId })
  const ended = folded(decide(resumed, { ...end('completed'), runId: newRunId } as Intent) as EventDraft[], resumed)
  expect(currentTask(ended)).toBeUndefined()
})

test('a message that the ended run did not read gets a separate run, without the task', () => {
  const unread = folded([userMessage('and then?', true)], situations.running)
  const outcome = decide(unread, { ...end('error'), requestedAt: 1 } as Intent) as EventDraft[]
  expect(outcome.map(nameOf)).toEqual(['Result', 'current error', 'StatusUpdate', 'StatusUpdate'])
  expect(currentTask(folded(outcome, unread))).toBeUndefined()
})

describe('a message during the run of a cancelled task that asked for a run', () => {
  const unread = folded([userMessage('and then?', true)], begun)

  test('gets a separate one if the model has not read it', () => {
    const outcome = decide(unread, { ...COMMANDS['cancel the current one'], requestedAt: begun.lastSeq })
    expect((outcome as EventDraft[]).slice(-2)).toMatchObject([
      { type: 'StatusUpdate', status: 'cancelled' },
      { type: 'StatusUpdate', status: 'running', previous_status: 'cancelled', run_id: newRunId },
    ])
  })

  test('goes with the run when it was part of the request that is cancelled', () => {
    const outcome = decide(unread, { ...COMMANDS['cancel the current one'], requestedAt: unread.lastSeq })
    expect(folded(outcome as EventDraft[], unread).status).toBe('cancelled')
  })

  test('is not the message that the task began with', () => {
    const outcome = decide(begun, COMMANDS['cancel the current one'])
    expect(folded(outcome as EventDraft[], begun).status).toBe('cancelled')
  })
})

test('a conversation has so many open tasks and no more', () => {
  const full = folded([...Array(MAX_OPEN_TASKS).keys()].map((n) => posted(`task ${n}`)))
  expect(decide(full, COMMANDS['post a task'])).toMatchObject({
    code: 'limit_reached',
    details: { limit: MAX_OPEN_TASKS, retry_after: 1 },
  })
  expect(decide(folded([update('task 7', 'cancelled')], full), COMMANDS['post a task'])).toHaveLength(1)
})

test('tasks of a newer version are ignored, and none starts', () => {
  const newer = { ...folded([posted(ids.queued), posted(ids.job, command)]), version: EVENT_VERSION + 1 }
  expect(decide(newer, COMMANDS['post a task'])).toMatchObject({ code: 'conversation_from_newer_version' })
  expect(nextTasks(newer)).toEqual([])
})

test('the state contains what a list needs of an open task, and nothing that may be large', () => {
  const { tasks } = folded([posted(ids.current, agentRun('x'.repeat(10_000)))])
  expect(JSON.stringify(tasks).length).toBeLessThan(500)
  expect(tasks).toMatchObject([{ id: ids.current, type: 'AgentRun', status: 'pending', seq: 1 }])
  expect(folded([update(ids.current, 'cancelled')], folded([posted(ids.current)])).tasks).toEqual([])
  expect(folded([posted(ids.current)]).id).toBe(conversationId)
})

test('the message that starts a task is read before what an ended run has left open', () => {
  const ended = folded([update(ids.current, 'error'), status('error', 'running')], inCall)
  const start = { ...COMMANDS['start the queued one'], begun: ['a'] }
  const outcome = decide(ended, start) as EventDraft[]
  expect(outcome.map(nameOf)).toEqual(['queued running', 'ToolResult', 'UserMessage', 'StatusUpdate'])
  expect(outcome[1]).toMatchObject({ tool_use_id: 'b', error_type: 'interrupted' })
})

test('each event of an intent about a task is valid, and says what was reviewed', async () => {
  await expectReviewed('task-intents', COMMANDS, SITUATIONS, (situation) => situations[situation])
})

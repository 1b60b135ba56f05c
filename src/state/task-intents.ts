/**
 * Decides the events of intents about tasks. Pure. A task ends once, and the cause of its end is logged in the same
 * batch.
 */
import type { EventDraft } from '../contract/events/event.ts'
import type { PromptHooks } from './hook-decisions.ts'
import type { StopReason } from '../contract/events/status.ts'
import type { Runnable, TaskProgress, TaskResult } from '../contract/values/task.ts'
import { partsOf } from '../contract/values/message.ts'
import { Problem } from '../contract/problem.ts'
import {
  BEFORE_MESSAGE,
  endBackground,
  inRun,
  interruptCalls,
  keyOf,
  result,
  start,
  startForUnread,
  toStatus,
} from './drafts.ts'
import type { Idempotency } from './idempotency.ts'
import type { State } from './state.ts'
import type { OpenTask } from './task-state.ts'
import { MAX_OPEN_TASKS, TASK_AFTER, currentTask, nextTasks, runningJobs } from './task-state.ts'

export type PostTaskIntent = {
  kind: 'post_task'
  taskId: string
  title: string
  runnable: Runnable
  idempotency?: Idempotency
  /** What hooks said about its message. */
  hooks?: PromptHooks
}
/** `runnable` is the redacted copy in the log, `begun` the open calls whose tool writes the result. */
export type StartTaskIntent = {
  kind: 'start_task'
  taskId: string
  runnable: Runnable
  begun: readonly string[]
  newRunId: string
}
export type TickTaskIntent = { kind: 'tick_task'; taskId: string; progress: TaskProgress }
/** A background job has ended by itself. */
export type EndTaskIntent = {
  kind: 'end_task'
  taskId: string
  status: 'completed' | 'error'
  result?: TaskResult
  message?: string
}
/** Its work has stopped; `begun` are the calls of tools that did not stop, `result` what a job had produced. */
export type CancelTaskIntent = {
  kind: 'cancel_task'
  taskId: string
  begun: readonly string[]
  /** The log's head at the last model request of the run that ends with it, or 0 if there was none. */
  requestedAt: number
  /** The run id for an unread message. */
  newRunId: string
  result?: TaskResult
  now: number
}

/** Retry-After for a client that waits for the end of a task. */
const RETRY_AFTER_S = 1

type TaskDraft = Extract<EventDraft, { type: 'TaskUpdate' }>

export function decidePostTask(state: State, intent: PostTaskIntent): EventDraft[] | Problem {
  if (state.tasks.length >= MAX_OPEN_TASKS) {
    return new Problem(
      'limit_reached',
      `A conversation has at most ${MAX_OPEN_TASKS} open tasks; wait for some of them to end, or cancel them.`,
      { details: { limit: MAX_OPEN_TASKS, retry_after: RETRY_AFTER_S } },
    )
  }
  const { taskId, title, runnable, idempotency } = intent
  const postedTask: TaskDraft = {
    type: 'TaskUpdate',
    source: 'user',
    task_id: taskId,
    title,
    status: 'pending',
    runnable,
    ...keyOf(idempotency),
  }
  return [...(intent.hooks?.events ?? []), postedTask]
}

export function decideStartTask(state: State, { taskId, runnable, begun, newRunId }: StartTaskIntent): EventDraft[] {
  const task = nextTasks(state).find(({ id }) => id === taskId)
  if (!task) return []
  if (runnable.type !== 'AgentRun') return [update(task, 'running')]
  const { message } = runnable
  const begins: EventDraft = {
    type: 'UserMessage',
    source: 'user',
    content: partsOf(message.content),
    run: true,
    run_id: newRunId,
    ...(message.sender !== undefined && { sender: message.sender }),
    task_id: taskId,
  }
  return [
    { ...update(task, 'running'), run_id: newRunId },
    ...interruptCalls(state, begun, BEFORE_MESSAGE),
    begins,
    start(state, newRunId, 'task'),
  ]
}

export function decideTickTask(state: State, { taskId, progress }: TickTaskIntent): EventDraft[] {
  return runningJobs(state)
    .filter(({ id }) => id === taskId)
    .map((task) => ({ ...update(task, 'running'), progress }))
}

export function decideEndTask(state: State, intent: EndTaskIntent): EventDraft[] {
  const { taskId, status, result, message } = intent
  return runningJobs(state)
    .filter(({ id }) => id === taskId)
    .map((task) => ({ ...update(task, status), ...(result && { result }), ...(message !== undefined && { message }) }))
}

/** Returns no events for a task that has ended. The agent's task ends its run, and with it all pending approvals. */
export function decideCancelTask(state: State, intent: CancelTaskIntent): EventDraft[] {
  const task = state.tasks.find(({ id }) => id === intent.taskId)
  if (!task) return []
  const { result: ran, begun, requestedAt, newRunId, now } = intent
  if (task !== currentTask(state)) return [{ ...cancelTask(task), ...(ran && { result: ran }) }]
  // The message that began the run is cancelled with it; a later message asked for more than what is cancelled.
  const readThrough = Math.max(requestedAt, state.readThrough, state.run?.startSeq ?? 0)
  return [
    ...interruptCalls(state, begun, CANCELLED),
    ...endBackground(state, begun, 'cancelled', CANCELLED),
    ...(state.run ? [result(state, 'cancelled', now)] : []),
    { ...cancelTask(task), ...inRunOf(task), result: resultOf(state, task) },
    toStatus(state, 'cancelled', 'cancel'),
    ...(state.run ? startForUnread(state, 'cancelled', readThrough, newRunId) : []),
  ]
}

/** Returns the task update for the end of the agent's run. */
export function endOfCurrentTask(state: State, stopReason: StopReason, finalText?: string): EventDraft[] {
  const task = currentTask(state)
  const status = TASK_AFTER[stopReason]
  if (!task || !status) return []
  const message = status === 'completed' ? {} : { message: `The agent's run ended: ${stopReason}.` }
  return [{ ...update(task, status), ...inRun(state), result: resultOf(state, task, finalText), ...message }]
}

/** Ends the background jobs of another process. Nobody knows how far they got. */
export function endOfLostJobs(state: State): EventDraft[] {
  return runningJobs(state).map((task) => ({ ...update(task, 'error'), message: LOST }))
}

/** Ends open tasks in a fork: they belong to the original. */
export function leaveTasks(state: State): EventDraft[] {
  return state.tasks.map((task) => ({ ...cancelTask(task), message: LEFT_BEHIND }))
}

/** The tasks that a rewind ends: those that were posted after the event, and the one that the agent works on. */
export const tasksBeyond = (state: Pick<State, 'tasks'>, seq: number): readonly OpenTask[] =>
  state.tasks.filter((task) => task.seq > seq || task === currentTask(state))

/** Ends them. */
export function leaveRewoundTasks(state: State, seq: number): EventDraft[] {
  return tasksBeyond(state, seq).map((task) => ({ ...cancelTask(task), ...inRunOf(task), message: REWOUND }))
}

const CANCELLED = 'cancelled: its task was cancelled'
const LOST = 'The server stopped while this ran; it is not known what it did.'
const REWOUND = 'The conversation was taken back to an event before this task, or before its end.'
const LEFT_BEHIND = 'This task belongs to the conversation that this one was forked from.'

function update(task: OpenTask, status: TaskDraft['status']): TaskDraft {
  return { type: 'TaskUpdate', source: 'environment', task_id: task.id, title: task.title, status }
}

const cancelTask = (task: OpenTask): TaskDraft => ({ ...update(task, 'cancelled'), source: 'user' })

const inRunOf = ({ runId }: OpenTask) => (runId === undefined ? {} : { run_id: runId })

function resultOf(state: State, task: OpenTask, finalText?: string): TaskResult {
  return { type: 'AgentRun', ...inRunOf(task), final_text: finalText || (state.run?.finalText ?? '') }
}

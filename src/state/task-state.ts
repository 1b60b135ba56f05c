/**
 * Tasks as a pure fold over the log: which are open, and which is next. Ended tasks are read from the log.
 *
 * The agent's tasks are a queue: at most one of them is `running`, from its start until its run ends. A paused run has
 * not ended: its task stays `running`, the next run continues it, and the queue waits until then. Commands run outside the
 * agent, a few at a time, and tickers all at once.
 */
import type { EventOf } from '../contract/events/event.ts'
import type { Status, StopReason } from '../contract/events/status.ts'
import { EVENT_VERSION } from '../contract/events/event.ts'
import type { Runnable, TaskProgress, TaskStatus } from '../contract/values/task.ts'

export type OpenTask = {
  readonly id: string
  readonly type: Runnable['type']
  readonly title: string
  readonly status: 'pending' | 'running'
  /** Seq of the event that posted it and holds its runnable: that may be large, and is read when it is needed. */
  readonly seq: number
  readonly createdAt: string
  readonly updatedAt: string
  /** The agent's run that works on it. */
  readonly runId?: string | undefined
  readonly progress?: TaskProgress | undefined
}

/** Open tasks of one conversation. */
export const MAX_OPEN_TASKS = 100
/** Commands of tasks that run concurrently. */
export const MAX_COMMANDS = 4

/** Says in which status the next task of the agent may start. Pausing the agent pauses its queue. */
const QUEUE_GOES_ON: Readonly<Record<Status, boolean>> = {
  idle: true,
  finished: true,
  error: true,
  cancelled: true,
  paused: false,
  running: false,
  waiting_for_confirmation: false,
  waiting_for_input: false,
  waiting_for_client: false,
}

/** The task's status after its run has ended; undefined: the task continues with the next run. */
export const TASK_AFTER: Readonly<Record<StopReason, 'completed' | 'error' | 'cancelled' | undefined>> = {
  completed: 'completed',
  finished: 'completed',
  iteration_limit: 'error',
  content_filter: 'error',
  hook: 'error',
  stuck: 'error',
  time_limit: 'error',
  budget_limit: 'error',
  token_limit: 'error',
  error: 'error',
  paused: undefined,
  max_steps: undefined,
  server_restart: undefined,
  owner_lost: undefined,
  rejected: 'cancelled',
  superseded: 'cancelled',
  cancelled: 'cancelled',
}

export const isOpen = (status: TaskStatus): status is OpenTask['status'] => status === 'pending' || status === 'running'

type Tasks = readonly OpenTask[]

export function tasksAfter(tasks: Tasks, event: EventOf<'TaskUpdate'>): Tasks {
  const { task_id: id, title, status, runnable, seq, timestamp, run_id: runId, progress } = event
  if (!isOpen(status)) return tasks.filter((task) => task.id !== id)
  const knownTask = tasks.find((task) => task.id === id)
  if (knownTask) {
    const news = { status, updatedAt: timestamp, ...(runId !== undefined && { runId }), ...(progress && { progress }) }
    return tasks.map((task) => (task === knownTask ? { ...knownTask, ...news } : task))
  }
  if (!runnable) return tasks // the task has ended
  return [...tasks, { id, type: runnable.type, title, status, seq, createdAt: timestamp, updatedAt: timestamp }]
}

/** A run begins or continues: it belongs to the agent's task, if there is one. */
export function tasksInRun(tasks: Tasks, runId: string | undefined): Tasks {
  const current = currentTask({ tasks })
  if (!current || runId === undefined || current.runId === runId) return tasks
  return tasks.map((task) => (task === current ? { ...task, runId } : task))
}

/** Returns the task that the agent works on or will continue. */
export const currentTask = ({ tasks }: { readonly tasks: Tasks }): OpenTask | undefined =>
  tasks.find((task) => task.type === 'AgentRun' && task.status === 'running')

/** Returns the tasks that run as background jobs. */
export const runningJobs = ({ tasks }: { readonly tasks: Tasks }): Tasks =>
  tasks.filter((task) => task.type !== 'AgentRun' && task.status === 'running')

type Situation = { readonly status: Status; readonly version: number; readonly tasks: Tasks }

/** Returns the tasks that can start now, in order. */
export function nextTasks(state: Situation): Tasks {
  const { tasks, status, version } = state
  if (version > EVENT_VERSION) return []
  const pending = tasks.filter((task) => task.status === 'pending')
  const first = QUEUE_GOES_ON[status] ? pending.find((task) => task.type === 'AgentRun') : undefined
  const free = MAX_COMMANDS - runningJobs(state).filter((task) => task.type === 'Command').length
  const commands = pending.filter((task) => task.type === 'Command').slice(0, Math.max(0, free))
  return pending.filter((task) => task === first || commands.includes(task) || task.type === 'Ticker')
}

/** True if a job runs or is about to begin. */
export const hasJobs = (state: Situation): boolean => runningJobs(state).length > 0 || nextTasks(state).length > 0

/** The run of a conversation as a pure fold: when it works, what it cost, and which status its end leads to. */
import type { EventOf } from '../../contract/events/event.ts'
import type { Status, StopReason } from '../../contract/events/status.ts'
import { DEQUEUED } from '../../contract/events/status.ts'
import type { Usage, UsageByModel } from '../../contract/message.ts'
import { NO_USAGE, addCost, addUsage } from '../../contract/message.ts'

/** The run that is under way. */
export type Run = {
  readonly id: string
  /** RFC 3339. */
  readonly startedAt: string
  /** Seq of the event it began with. */
  readonly startSeq: number
  readonly steps: number
  /** Model answers after which it pauses. */
  readonly maxSteps: number | undefined
  /** Since when it works, RFC 3339, and how long it had worked before it waited for somebody, milliseconds. */
  readonly activeSince: string
  readonly activeMs: number
  readonly usage: UsageByModel
  readonly costUsd: number | undefined
  readonly finalText: string
}

/** Which status a run's end leads to. */
export const STATUS_AFTER: Readonly<Record<StopReason, Status>> = {
  completed: 'idle',
  finished: 'finished',
  paused: 'paused',
  max_steps: 'paused',
  server_restart: 'paused',
  iteration_limit: 'error',
  stuck: 'error',
  content_filter: 'error',
  time_limit: 'error',
  error: 'error',
  rejected: 'idle',
  superseded: 'idle',
  cancelled: 'cancelled',
}

/** The run after a change from the status `before`; undefined when none is under way. */
export function runAfter(run: Run | undefined, before: Status, event: EventOf<'StatusUpdate'>): Run | undefined {
  if (event.status !== 'running' && !event.status.startsWith('waiting_')) return undefined
  if (!event.run_id || run?.id === event.run_id) return run && countTime(run, before, event)
  return {
    id: event.run_id,
    startedAt: event.timestamp,
    startSeq: event.seq,
    steps: 0,
    maxSteps: event.max_steps,
    activeSince: event.timestamp,
    activeMs: 0,
    usage: {},
    costUsd: undefined,
    finalText: '',
  }
}

/** The run after one more answer of its model. */
export function runAfterAnswer(run: Run, event: EventOf<'AssistantMessage'>): Run {
  return {
    ...run,
    steps: run.steps + 1,
    usage: countUsage(run.usage, event.model, event.usage),
    costUsd: addCost(run.costUsd, event.cost_usd),
    finalText: event.text,
  }
}

export function countUsage(total: UsageByModel, model: string, usage: Usage): UsageByModel {
  return { ...total, [model]: addUsage(total[model] ?? NO_USAGE, usage) }
}

/** While it waits for somebody, or for its turn, its time does not run. */
function countTime(run: Run, before: Status, { status, reason, timestamp }: EventOf<'StatusUpdate'>): Run {
  if (status === 'running') {
    return before === 'running' && reason !== DEQUEUED ? run : { ...run, activeSince: timestamp }
  }
  if (before !== 'running') return run
  // A clock that was set back must not give time away.
  return { ...run, activeMs: run.activeMs + Math.max(0, Date.parse(timestamp) - Date.parse(run.activeSince)) }
}

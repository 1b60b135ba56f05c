/** The run of a conversation as a pure fold: when it works, what it costs, and which status its end leads to. */
import type { EventOf } from '../contract/events/event.ts'
import type { ToolChoice } from '../contract/values/llm-config.ts'
import type { Status, StopReason } from '../contract/events/status.ts'
import { DEQUEUED } from '../contract/events/status.ts'
import type { UsageByModel } from '../contract/values/message.ts'
import { addCost, countUsage } from '../contract/values/message.ts'

export type OutputSchema = Readonly<Record<string, unknown>>

/** The active run. */
export type Run = {
  readonly id: string
  /** RFC 3339. */
  readonly startedAt: string
  /** Seq of its first event. */
  readonly startSeq: number
  readonly steps: number
  /** Number of model answers after which it pauses. */
  readonly maxSteps: number | undefined
  /** The schema of its final answer, if the request of the run had one, and how often it has asked for that answer. */
  readonly outputSchema?: OutputSchema | undefined
  readonly outputRequests?: number
  /** The choice for its first answer; otherwise that of the configuration holds. */
  readonly toolChoice?: ToolChoice | undefined
  /** RFC 3339 time since when it works, and the milliseconds it had worked before it waited for a user. */
  readonly activeSince: string
  readonly activeMs: number
  readonly usage: UsageByModel
  readonly costUsd: number | undefined
  /** The model of an answer whose cost is not known. */
  readonly unpriced?: string | undefined
  readonly finalText: string
  /** How often a hook has had it continue instead of ending. */
  readonly blockedStops?: number | undefined
}

/** The status after a run's end. */
export const STATUS_AFTER: Readonly<Record<StopReason, Status>> = {
  completed: 'idle',
  finished: 'finished',
  paused: 'paused',
  max_steps: 'paused',
  server_restart: 'paused',
  owner_lost: 'paused',
  iteration_limit: 'error',
  stuck: 'error',
  content_filter: 'error',
  hook: 'idle',
  time_limit: 'error',
  budget_limit: 'error',
  token_limit: 'error',
  error: 'error',
  rejected: 'idle',
  superseded: 'idle',
  cancelled: 'cancelled',
}

/** Returns the run after a change from the status `before`; undefined if no run is active. */
export function runAfter(run: Run | undefined, before: Status, event: EventOf<'StatusUpdate'>): Run | undefined {
  if (event.status !== 'running' && !event.status.startsWith('waiting_')) return undefined
  if (!event.run_id || run?.id === event.run_id) return run && countTime(run, before, event)
  return {
    id: event.run_id,
    startedAt: event.timestamp,
    startSeq: event.seq,
    steps: 0,
    maxSteps: event.max_steps,
    ...(event.output_schema && { outputSchema: event.output_schema }),
    ...(event.tool_choice && { toolChoice: event.tool_choice }),
    activeSince: event.timestamp,
    activeMs: 0,
    usage: {},
    costUsd: undefined,
    finalText: '',
  }
}

/** A client has asked for runs with other reasons. A message has set the count to 0 before. */
const FOLLOWING: ReadonlySet<string> = new Set(['message', 'subagent'])

/** Returns how many runs have begun, with this one, since the user asked for something. */
export const countInARow = (before: number, reason: string) => (FOLLOWING.has(reason) ? before + 1 : 1)

/** Returns the run after one more model answer. */
export function runAfterAnswer(run: Run, event: EventOf<'AssistantMessage'>): Run {
  return {
    ...run,
    steps: run.steps + 1,
    ...spentByRun(run, event),
    finalText: event.text,
  }
}

/** The cost of an answer that was cut off is never known. */
export function spentByRun(run: Run, event: EventOf<'AssistantMessage' | 'Condensation'>): Partial<Run> {
  const { model, usage, cost_usd } = event
  if (model === undefined || !usage) return {}
  const isWhole = event.type === 'AssistantMessage' ? !event.partial : usage.output_tokens > 0
  return {
    usage: countUsage(run.usage, model, usage),
    costUsd: addCost(run.costUsd, cost_usd),
    ...(isWhole && cost_usd === undefined && { unpriced: model }),
  }
}

/** The run keeps the schema that its model has read, whatever is configured later. */
export function runAfterOutputRequest(run: Run, { output_schema }: EventOf<'OutputRequest'>): Run {
  const outputSchema = output_schema ?? run.outputSchema
  return { ...run, ...(outputSchema && { outputSchema }), outputRequests: (run.outputRequests ?? 0) + 1 }
}

type Spending = { readonly run: Run | undefined; readonly usage: UsageByModel; readonly costUsd: number | undefined }

/** Counts what a summary or a title took: for the run that it was made in, if any, and for the conversation. It is not a step. */
export function spentBesides(before: Spending, event: EventOf<'Condensation' | 'ConfigUpdate'>): Spending {
  const { model, usage: usedTokens, cost_usd } = event
  const { run, usage, costUsd } = before
  if (model === undefined || !usedTokens) return { run, usage, costUsd }
  const isOfRun = event.type === 'Condensation' && run !== undefined && run.id === event.run_id
  return {
    run: isOfRun ? { ...run, ...spentByRun(run, event) } : run,
    usage: countUsage(usage, model, usedTokens),
    costUsd: addCost(costUsd, cost_usd),
  }
}

/** Returns how long the run has worked, also in another process. `updatedAt`: the time of the last event. */
export const workedMs = ({ run, updatedAt }: { readonly run: Run | undefined; readonly updatedAt: string }): number =>
  run ? run.activeMs + Math.max(0, Date.parse(updatedAt) - Date.parse(run.activeSince)) : 0

/** The run's time does not count while it waits for a user or in the queue. */
function countTime(run: Run, before: Status, { status, reason, timestamp }: EventOf<'StatusUpdate'>): Run {
  if (status === 'running') {
    return before === 'running' && reason !== DEQUEUED ? run : { ...run, activeSince: timestamp }
  }
  if (before !== 'running') return run
  // A clock that was set back must not extend the time limit.
  return { ...run, activeMs: run.activeMs + Math.max(0, Date.parse(timestamp) - Date.parse(run.activeSince)) }
}

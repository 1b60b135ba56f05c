/** `run()`: a query until its end, as one outcome. */
import { addCost, addUsage } from '../contract/values/message.ts'
import type { UsageByModel } from '../contract/values/message.ts'
import type { Event, EventOf } from '../contract/events/event.ts'
import type { ErrorType, Status, StopReason } from '../contract/events/status.ts'
import { restOf } from '../contract/requests/request-kinds.ts'
import { invalid } from './errors/invalid.ts'
import type { QueryRequest } from './query.ts'
import { query } from './query.ts'

export type QueryOutcome = {
  /** The last answer; empty if the model gave no answer. */
  readonly finalText: string
  /** Valid for `outputSchema`; absent without it, or if the run ended before the answer. */
  readonly structuredOutput?: unknown
  /** The usage by model, of all runs of the query. */
  readonly usage: UsageByModel
  readonly costUsd?: number
  /** The status if the session waits for somebody else. */
  readonly stopReason: StopReason | Extract<Status, `waiting_${string}`>
  /** Why the run failed, with the stop reason `error`. */
  readonly error?: { readonly type: ErrorType; readonly message: string }
  /** Number of model answers. */
  readonly steps: number
  readonly sessionId: string
  /** The stored events. */
  readonly events: readonly Event[]
}

/** A run that fails is an outcome with `error`. Throws what the query throws: the agent was not asked. */
export async function run(request: QueryRequest): Promise<QueryOutcome> {
  const events: Event[] = []
  for await (const event of query(request)) if ('seq' in event) events.push(event)
  return outputOf(events)
}

function outputOf(events: readonly Event[]): QueryOutcome {
  const results = events.filter(isResult)
  const result = results.at(-1)
  const status = events.findLast((event) => event.type === 'StatusUpdate')?.status
  const waiting = status !== undefined && isWaiting(status) ? status : undefined
  const [first] = events
  const stopReason = waiting ?? result?.stop_reason ?? openRequestIn(events)
  if (!first || stopReason === undefined)
    throw invalid('No run has ended: the prompt had no message, or the session was deleted.')
  const costUsd = results.reduce<number | undefined>((sum, { cost_usd }) => addCost(sum, cost_usd), undefined)
  const error = stopReason === 'error' ? events.findLast(isOwnError) : undefined
  return {
    finalText: result?.final_text ?? '',
    ...(result?.structured_output !== undefined && { structuredOutput: result.structured_output }),
    usage: sumOf(results),
    ...(costUsd !== undefined && { costUsd }),
    stopReason,
    ...(error && { error: { type: error.error_type, message: error.message } }),
    steps: results.reduce((sum, { steps }) => sum + steps, 0),
    sessionId: first.conversation_id,
    events,
  }
}

const isWaiting = (status: Status): status is Extract<Status, `waiting_${string}`> => status.startsWith('waiting_')

/** The status of a session that still waits, from its last request. */
function openRequestIn(events: readonly Event[]): QueryOutcome['stopReason'] | undefined {
  const statuses = events.flatMap((event) => (event.type === 'RequestOpened' ? restOf(event.kind) : undefined) ?? [])
  return statuses.at(-1)
}

/** Subagents have results and errors, too. */
const isResult = (event: Event): event is EventOf<'Result'> =>
  event.type === 'Result' && event.parent_tool_use_id === undefined
const isOwnError = (event: Event): event is EventOf<'ErrorEvent'> =>
  event.type === 'ErrorEvent' && event.parent_tool_use_id === undefined

function sumOf(results: readonly EventOf<'Result'>[]): UsageByModel {
  const sum: UsageByModel = {}
  for (const { usage } of results)
    for (const [model, usedTokens] of Object.entries(usage)) {
      const before = sum[model]
      sum[model] = before ? addUsage(before, usedTokens) : usedTokens
    }
  return sum
}

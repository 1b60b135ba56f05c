/** The last event of a run. */
import type { TurnChange } from '../items/turn-changes.ts'
import type { AgUiEvent } from './ag-ui-event.ts'
import type { AgUiInterrupt } from './interrupts.ts'

type RunAtEnd = {
  readonly threadId: string
  readonly runId: string
  readonly usage: readonly object[]
  /** What it waits for. */
  readonly interrupts: readonly AgUiInterrupt[] | undefined
  /** Frontend tools that the client has not executed. */
  readonly pendingToolCallIds: readonly string[]
}

const STOPPED: ReadonlySet<string> = new Set(['paused', 'cancelled', 'superseded', 'rejected'])
const WITH_ERROR: ReadonlySet<string> = new Set(['error', 'server_restart', 'owner_lost', 'stuck', 'hook'])

export function endEvents(
  change: Extract<TurnChange, { type: 'rests' | 'ended' }>,
  { threadId, runId, usage, interrupts = [], pendingToolCallIds }: RunAtEnd,
): AgUiEvent {
  const usageField = usage.length > 0 && { usage }
  const finishEvent = { type: 'RUN_FINISHED', threadId, runId, ...usageField }
  if (change.type === 'rests') {
    if (interrupts.length > 0) return { ...finishEvent, outcome: { type: 'interrupt', interrupts } }
    return {
      ...finishEvent,
      outcome: { type: 'success', ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) },
    }
  }
  const { stop_reason: reason, interrupted, final_text, structured_output } = change.result
  if (interrupted || STOPPED.has(reason)) return { ...finishEvent, outcome: { type: 'cancelled' } }
  if (WITH_ERROR.has(reason)) {
    const message = change.error?.message ?? `The run ended: ${reason}. Send a message to continue.`
    return { type: 'RUN_ERROR', message, code: change.error?.error_type ?? reason, ...usageField }
  }
  const result = {
    stop_reason: reason,
    final_text,
    ...(structured_output !== undefined && { structured_output }),
  }
  return { ...finishEvent, result, outcome: { type: 'success' } }
}

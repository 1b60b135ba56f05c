/** Waits for the end of a run by its events, which also works over lost connections and restarts of the server. */
import type { EventOf } from '../../contract/events/event.ts'
import type { RunOutcome } from '../../contract/run.ts'

/** How a run ended, or what it waits for. */
export type RunSummary = Pick<RunOutcome, 'status' | 'result' | 'error'> & { readonly run_id?: string | undefined }

type EndEvent = EventOf<'StatusUpdate' | 'Result' | 'ErrorEvent'>

export const END_TYPES = ['StatusUpdate', 'Result', 'ErrorEvent'] as const

/**
 * Returns when the conversation is no longer `running`. With `runId` the ends of earlier runs are ignored. Returns
 * undefined if the events end before that: the conversation was deleted.
 */
export async function outcomeIn(events: AsyncIterable<EndEvent>, runId?: string): Promise<RunSummary | undefined> {
  let runEnd: Pick<RunSummary, 'result' | 'error'> = {}
  for await (const event of events) {
    if (runId !== undefined && event.run_id !== runId) continue
    runEnd = endAfter(runEnd, event)
    if (event.type === 'StatusUpdate' && event.status !== 'running')
      return { run_id: event.run_id, status: event.status, ...runEnd }
  }
  return undefined
}

export function endAfter(runEnd: Pick<RunSummary, 'result' | 'error'>, event: EndEvent): typeof runEnd {
  switch (event.type) {
    case 'Result':
      // A subagent has a result, too.
      return event.parent_tool_use_id === undefined ? { ...runEnd, result: event } : runEnd
    case 'ErrorEvent':
      return { ...runEnd, error: { type: event.error_type, message: event.message } }
    case 'StatusUpdate':
      return runEnd
    default:
      return event satisfies never
  }
}

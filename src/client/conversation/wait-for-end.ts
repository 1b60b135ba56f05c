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
  let ended: Pick<RunSummary, 'result' | 'error'> = {}
  for await (const event of events) {
    if (runId !== undefined && event.run_id !== runId) continue
    ended = endAfter(ended, event)
    if (event.type === 'StatusUpdate' && event.status !== 'running')
      return { run_id: event.run_id, status: event.status, ...ended }
  }
  return undefined
}

export function endAfter(ended: Pick<RunSummary, 'result' | 'error'>, event: EndEvent): typeof ended {
  switch (event.type) {
    case 'Result':
      // A subagent has a result, too.
      return event.parent_tool_use_id === undefined ? { ...ended, result: event } : ended
    case 'ErrorEvent':
      return { ...ended, error: { type: event.error_type, message: event.message } }
    case 'StatusUpdate':
      return ended
    default:
      return event satisfies never
  }
}

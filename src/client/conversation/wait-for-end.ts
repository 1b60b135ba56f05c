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

/** Returns how the run of the newest status ended, if it has. `newestFirst` can also have ends of subagents after it. */
export async function latestEnd(newestFirst: AsyncIterable<EndEvent>): Promise<Omit<RunSummary, 'status'>> {
  const ends: EndEvent[] = []
  let run: { readonly id: string | undefined } | undefined
  for await (const event of newestFirst) {
    if (event.type === 'StatusUpdate') run ??= { id: event.run_id }
    if (event.type === 'StatusUpdate' && event.run_id !== run?.id) break
    if (run?.id !== undefined && event.run_id === run.id) ends.push(event)
  }
  return { run_id: run?.id, ...ends.toReversed().reduce(endAfter, {}) }
}

function endAfter(runEnd: Pick<RunSummary, 'result' | 'error'>, event: EndEvent): typeof runEnd {
  // Subagents have results and errors, too.
  if (event.type !== 'StatusUpdate' && event.parent_tool_use_id !== undefined) return runEnd
  switch (event.type) {
    case 'Result':
      return { ...runEnd, result: event }
    case 'ErrorEvent':
      return { ...runEnd, error: { type: event.error_type, message: event.message } }
    case 'StatusUpdate':
      return runEnd
    default:
      return event satisfies never
  }
}

/** Waits for a run on behalf of a client: until the run has ended or the client's timeout has passed. */
import type { Event } from '../../contract/events/event.ts'
import type { RunOutcome } from '../../contract/run.ts'
import type { EventLog } from '../../events/event-log.ts'

export type RunWait = {
  readonly runId: string
  /** Returns true if the run has ended or waits for a user. */
  readonly isOver: () => boolean
  /** Calls `onChange` when `isOver` may have changed without an event. Returns an unsubscribe function. */
  readonly watch: (onChange: () => void) => () => void
  readonly timeoutMs: number
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/** What the run ended with; `error` says why it failed. */
type AwaitedEnd = Pick<RunOutcome, 'result' | 'error'>

/** Returns the end of the run, if it exists by then. */
export async function waitForRun(
  log: EventLog,
  { runId, isOver, watch, timeoutMs, signal }: RunWait,
): Promise<AwaitedEnd> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const giveUp = () => resolve()
  const look = () => isOver() && resolve()
  let end: AwaitedEnd = {}
  const unsubscribe = log.subscribe({
    onEvents: (events) => {
      for (const { event } of events) end = endAfter(end, event, runId)
      look()
    },
    onClose: giveUp,
  })
  const unwatch = watch(look)
  signal.addEventListener('abort', giveUp, { once: true })
  const timer = setTimeout(giveUp, timeoutMs)
  try {
    // The run may have ended before the subscription.
    if (isOver()) return await lastEnd(log, runId)
    if (!signal.aborted) await promise
    return end
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    unwatch()
    unsubscribe()
  }
}

function endAfter(end: AwaitedEnd, event: Event, runId: string): AwaitedEnd {
  if (event.type === 'Result' && event.run_id === runId) return { ...end, result: event }
  return event.type === 'ErrorEvent' && event.run_id === runId
    ? { ...end, error: { type: event.error_type, message: event.message } }
    : end
}

/** A run that fails stores its error and its result together. */
async function lastEnd(log: EventLog, runId: string): Promise<AwaitedEnd> {
  const page = await log.read({ types: new Set(['Result', 'ErrorEvent']), order: 'desc', limit: 2 })
  return page.events.reduce((end, { event }) => endAfter(end, event, runId), {})
}

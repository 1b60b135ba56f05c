/** Waits for a run on behalf of a client: until the run has ended or the client's timeout has passed. */
import type { EventOf } from '../../contract/events/event.ts'
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

/** Returns the run's `Result`, if it exists by then. */
export async function waitForRun(
  log: EventLog,
  { runId, isOver, watch, timeoutMs, signal }: RunWait,
): Promise<EventOf<'Result'> | undefined> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const giveUp = () => resolve()
  const look = () => isOver() && resolve()
  let result: EventOf<'Result'> | undefined
  const unsubscribe = log.subscribe({
    onEvents: (events) => {
      for (const { event } of events) if (event.type === 'Result' && event.run_id === runId) result = event
      look()
    },
    onClose: giveUp,
  })
  const unwatch = watch(look)
  signal.addEventListener('abort', giveUp, { once: true })
  const timer = setTimeout(giveUp, timeoutMs)
  try {
    // The run may have ended before the subscription.
    if (isOver()) return await lastResult(log, runId)
    if (!signal.aborted) await promise
    return result
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    unwatch()
    unsubscribe()
  }
}

async function lastResult(log: EventLog, runId: string): Promise<EventOf<'Result'> | undefined> {
  const page = await log.read({ types: new Set(['Result']), order: 'desc', limit: 1 })
  const last = page.events[0]?.event
  return last?.type === 'Result' && last.run_id === runId ? last : undefined
}

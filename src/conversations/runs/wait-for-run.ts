/** Waiting for a run on behalf of a client: until it is over, or the client has waited long enough. */
import type { EventOf } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'

export type RunWait = {
  readonly runId: string
  /** Whether the run has ended or waits for somebody. */
  readonly isOver: () => boolean
  /** Tells when `isOver` may have changed without an event. Returns how to stop. */
  readonly watch: (onChange: () => void) => () => void
  readonly timeoutMs: number
  /** Of the client, who may go away. */
  readonly signal: AbortSignal
}

/** The run's `Result`, if it has one by then. */
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
    // It may have been over before we came to listen.
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

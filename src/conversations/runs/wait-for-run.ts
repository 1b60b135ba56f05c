/** Waits for a run on behalf of a client: until the run has ended or the client's timeout has passed. */
import type { Event } from '../../contract/events/event.ts'
import type { RunOutcome } from '../../contract/run.ts'
import type { EventLog } from '../../events/event-log.ts'
import { closedProblem } from '../../events/closed-problem.ts'
import { readPages } from '../../events/read-pages.ts'
import { afterRunning } from '../../lib/bounded-wait.ts'

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

type Log = Pick<EventLog, 'ended' | 'read' | 'subscribe'>

/** What the run ended with; `error` says why it failed. */
type AwaitedEnd = Pick<RunOutcome, 'result' | 'error'>

/** Returns the end of the run, if it exists by then. Throws a `Problem` if the conversation is deleted meanwhile. */
export async function waitForRun(log: Log, { runId, isOver, watch, timeoutMs, signal }: RunWait): Promise<AwaitedEnd> {
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
  const cancel = afterRunning(timeoutMs, giveUp)
  try {
    // The run may have ended before the subscription.
    if (isOver()) return await lastEnd(log, runId)
    if (!signal.aborted) await promise
    // The last status says that the run continues.
    if (log.ended === 'deleted') throw closedProblem('deleted')
    return end
  } finally {
    cancel()
    signal.removeEventListener('abort', giveUp)
    unwatch()
    unsubscribe()
  }
}

function endAfter(end: AwaitedEnd, event: Event, runId: string): AwaitedEnd {
  if (isOfSubagent(event)) return end
  if (event.type === 'Result' && event.run_id === runId) return { ...end, result: event }
  return event.type === 'ErrorEvent' && event.run_id === runId
    ? { ...end, error: { type: event.error_type, message: event.message } }
    : end
}

const ENDS = new Set(['Result', 'ErrorEvent'])
const ENDS_PAGE = 2

const isOfSubagent = (event: Event) => 'parent_tool_use_id' in event && event.parent_tool_use_id !== undefined

/** A run that fails stores its error and its result together. */
async function lastEnd(log: Log, runId: string): Promise<AwaitedEnd> {
  let end: AwaitedEnd = {}
  // Events of subagents and of later runs may be between its events and the end of the log.
  for await (const { events } of readPages(log, { types: ENDS, order: 'desc', limit: ENDS_PAGE })) {
    for (const { event } of events) {
      if (isOfSubagent(event)) continue
      if (!('run_id' in event) || event.run_id !== runId) {
        if (end.result) return end
        continue
      }
      const hasResult = end.result !== undefined
      end = endAfter(end, event, runId)
      if (hasResult || !end.result) return end
    }
  }
  return end
}

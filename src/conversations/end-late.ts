/**
 * A pause with `interrupt` answers while a tool of a subagent still ignores its signal. When that tool has ended, the call
 * that the subagent works for ends, too, and a subagent in the background: nobody has to pause a second time.
 */
import type { EventLog } from '../events/event-log.ts'
import type { Intent } from '../state/intents.ts'
import type { LiveState } from './live/live-state.ts'
import type { IntentInbox } from './live/inbox.ts'

type LateDeps = {
  readonly log: Pick<EventLog, 'subscribe'>
  readonly state: Pick<LiveState, 'current'>
  readonly actor: IntentInbox
  /** The pause as it is now. */
  readonly intent: () => Intent
  readonly onError: (error: unknown) => void
}

/** Call it after the pause. Ends when nothing is left, or another run has begun. */
export function endLate({ log, state, actor, intent, onError }: LateDeps): void {
  const runId = state.current.lastRun?.id
  const isOver = () => {
    const { status, lastRun, subagents } = state.current
    return subagents.length === 0 || status !== 'paused' || lastRun?.id !== runId
  }
  if (isOver()) return
  const end = async () => {
    if (!isOver()) await actor.apply(intent())
  }
  const unsubscribe = log.subscribe({
    onEvents(events) {
      if (isOver()) unsubscribe()
      else if (events.some(({ type }) => type === 'ToolResult')) actor.enqueue(end).catch(onError)
    },
  })
}

/** Why a conversation starts no run, whatever its status is. Pure. */
import { EVENT_VERSION } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { State } from './state.ts'

/** Returns the refusal of a conversation that a newer server wrote. */
export function refuseNewer(state: State): Problem | undefined {
  if (state.version <= EVENT_VERSION) return undefined
  return new Problem(
    'conversation_from_newer_version',
    'A newer version of the server wrote this conversation; it can be read here, but not run.',
  )
}

/** Refuses a second run to a client that knows the events up to `afterSeq`: another one may have started a run meanwhile. */
export function refuseSecond({ lastRun }: State, afterSeq = Infinity): Problem | undefined {
  if (!lastRun || lastRun.startSeq <= afterSeq) return undefined
  return new Problem('already_continued', 'A run has begun after this event; read its events.', {
    details: { run_id: lastRun.id },
  })
}

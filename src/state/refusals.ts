/** Why a conversation starts no run, whatever its status is. Pure. */
import { EVENT_VERSION } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import { rewoundAt } from './rewind.ts'
import type { State } from './state.ts'

/** Returns the refusal of a conversation that a newer server wrote. */
export function refuseNewer(state: State): Problem | undefined {
  if (state.version <= EVENT_VERSION) return undefined
  return new Problem(
    'conversation_from_newer_version',
    'A newer version of the server wrote this conversation; it can be read here, but not run.',
  )
}

/**
 * Refuses a run to a client that knows the events up to `afterSeq`: another one may have started a run meanwhile, or have
 * taken the conversation back.
 */
export function refuseSecond({ lastRun, rewound }: State, afterSeq = Infinity): Problem | undefined {
  if (rewoundAt(rewound) > afterSeq) return changedMeanwhile(afterSeq, rewoundAt(rewound))
  if (!lastRun || lastRun.startSeq <= afterSeq) return undefined
  return new Problem('already_continued', 'A run has begun after this event; read its events.', {
    details: { run_id: lastRun.id },
  })
}

export const alreadyRunning = ({ run }: State) =>
  new Problem('already_running', 'The agent is already running; follow it, or pause it first.', {
    details: { run_id: run?.id },
  })

/** Throws `conversation_changed` to a client that knows the events up to `afterSeq`, if the conversation was rewound later. */
export function refuseRewound({ rewound }: State, afterSeq: number): void {
  if (rewoundAt(rewound) > afterSeq) throw changedMeanwhile(afterSeq, rewoundAt(rewound))
}

/** `seq`: the event that the client does not know. */
export const changedMeanwhile = (knownSeq: number, seq: number) =>
  new Problem(
    'conversation_changed',
    `Event ${seq} has changed this conversation after event ${knownSeq}. Read the events after that, and decide again.`,
    { details: { seq } },
  )

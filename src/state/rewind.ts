/** What a conversation has after it went back. Pure. */
import type { EventOf } from '../contract/events/event.ts'
import type { RewoundSpan } from '../contract/events/rewound.ts'
import { withRewind } from '../contract/events/rewound.ts'
import { withPostedKey } from './idempotency.ts'
import { isOfCall } from './open-requests.ts'
import { NO_REPEATS } from './repeats/repeats.ts'
import type { State } from './state-shape.ts'

/** The agent has what it had at `to_seq`; nothing runs or waits. Whatever is not named here stays as it is now. */
export function afterRewind(state: State, event: EventOf<'Rewound'>): State {
  const { to_seq, restored, seq } = event
  const { forgotten, last_outputs: lastOutputs = {}, context_tokens: contextTokens } = restored
  const { lastRun, previewSeq } = state
  return {
    ...state,
    rewound: withRewind(state.rewound, event),
    postedKeys: withPostedKey(state.postedKeys, event),
    run: undefined,
    openCalls: [],
    subagents: [],
    request: undefined,
    requests: state.requests.filter((request) => !isOfCall(request)),
    holdsCalls: false,
    lastOutputs,
    granted: undefined,
    // No message before it asks for a run any more.
    readThrough: seq,
    runRequestedAt: 0,
    subagentEndedAt: 0,
    repeats: NO_REPEATS,
    answered: undefined,
    forgotten: forgotten && { seq: forgotten.seq, throughSeq: forgotten.through_seq },
    contextTokens,
    // What one run may do ends with it.
    lastRun: lastRun && { id: lastRun.id, startSeq: lastRun.startSeq },
    runsInARow: 0,
    ...(lastRun && lastRun.startSeq > to_seq && { lastWords: '' }),
    ...(previewSeq > to_seq && { preview: '', previewSeq: 0 }),
  }
}

/** The seq of the newest rewind; 0 without one. */
export const rewoundAt = (spans: readonly RewoundSpan[]): number => spans.at(-1)?.beforeSeq ?? 0

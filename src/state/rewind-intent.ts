/** Decides what ends when a conversation goes back. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import type { ClosedByRewind } from '../contract/events/rewound.ts'
import { answerOpenCalls, BEFORE_REWIND, endBackground, keyOf, toStatus } from './drafts.ts'
import type { Idempotency } from './idempotency.ts'
import { isOfCall } from './open-requests.ts'
import { closePermission } from './request-drafts.ts'
import type { AgentState, State } from './state-shape.ts'
import { openPermissions } from './subagents.ts'
import { leaveRewoundTasks, tasksBeyond } from './task-intents.ts'

/** `target`: the state at `toSeq`. The run has ended or was paused. */
type ConversationIntent = {
  kind: 'rewind'
  toSeq: number
  target: Pick<AgentState, 'lastOutputs' | 'forgotten' | 'contextTokens'>
  /** What worked or waited before the run was ended. */
  closed: ClosedByRewind
  processesLeft: number
  by?: string
  idempotency?: Idempotency
}

/** The files were restored. `idempotency`: of a request that does not take the conversation back, too. */
type FilesIntent = {
  kind: 'files_restored'
  toSeq: number
  restored: {
    readonly snapshot_id: string
    readonly changed: number
    readonly removed: number
    readonly failed: number
  }
  by?: string
  idempotency?: Idempotency
}

const filesRestored = ({ toSeq, restored, by, idempotency }: FilesIntent): EventDraft[] => [
  {
    type: 'FilesRestored',
    source: 'user',
    to_seq: toSeq,
    ...restored,
    ...(by !== undefined && { by }),
    ...keyOf(idempotency),
  },
]

export type RewindIntent = ConversationIntent | FilesIntent

export function decideRewind(state: State, intent: RewindIntent): EventDraft[] {
  if (intent.kind === 'files_restored') return filesRestored(intent)
  const { toSeq, target, closed, processesLeft, by, idempotency } = intent
  const { forgotten, contextTokens, lastOutputs } = target
  const rewound: EventDraft = {
    type: 'Rewound',
    source: 'user',
    to_seq: toSeq,
    ...(by !== undefined && { by }),
    closed,
    processes_left: processesLeft,
    restored: {
      ...(Object.keys(lastOutputs).length > 0 && { last_outputs: lastOutputs }),
      ...(forgotten && { forgotten: { seq: forgotten.seq, through_seq: forgotten.throughSeq } }),
      ...(contextTokens !== undefined && { context_tokens: contextTokens }),
    },
    ...keyOf(idempotency),
  }
  const atRest = state.status === 'idle' ? [] : [toStatus({ ...state, run: undefined }, 'idle', 'rewound')]
  return [
    ...closePermission(state, 'rewound', BEFORE_REWIND),
    ...answerOpenCalls(state, { type: 'interrupted', why: 'rewound', message: BEFORE_REWIND }),
    ...endBackground(state, [], 'cancelled', BEFORE_REWIND),
    ...leaveRewoundTasks(state, toSeq),
    rewound,
    ...atRest,
  ]
}

/** Returns what ends with a rewind. What waits for a host ends with the process that wants to reach it. */
export function closedByRewind(state: State, toSeq: number): ClosedByRewind {
  const waiting = state.requests.filter(isOfCall).map(({ request_id }) => request_id)
  return {
    requests: [...openPermissions(state).map(({ id }) => id), ...waiting],
    tasks: tasksBeyond(state, toSeq).map(({ id }) => id),
    subagents: state.subagents.map(({ agentId }) => agentId),
  }
}

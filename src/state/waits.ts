/** Knows for whom a run waits outside, while it has left its slot. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import { isUndecided } from './approval-intents.ts'
import { waitsForClient } from './client-result.ts'
import { toStatus } from './drafts.ts'
import { undecidedCalls } from './open-permission.ts'
import { hasQuestionBefore } from './question-intents.ts'
import type { State, Subagent } from './state-shape.ts'
import { isDetached, waitsForSubagents } from './subagents.ts'

/** The loop has reached calls that nobody here can continue, and has stopped. */
export type AwaitOutsideIntent = { kind: 'await_outside'; runId: string }

type Waiting = 'waiting_for_confirmation' | 'waiting_for_input' | 'waiting_for_client'

const REASON: Readonly<Record<Waiting, string>> = {
  waiting_for_confirmation: 'permission_request',
  waiting_for_input: 'user_question',
  waiting_for_client: 'client_tool',
}

/** Returns nothing if that is not so any more: the run continues. */
export function decideAwaitOutside(state: State, { runId }: AwaitOutsideIntent): EventDraft[] {
  return state.status === 'running' && state.run?.id === runId ? waitOutside(state) : []
}

export function waitOutside(state: State): EventDraft[] {
  const status = statusOfWait(state)
  return status ? [toStatus(state, status, REASON[status])] : []
}

/** The status of a run that cannot continue before somebody answers; undefined if it can. */
export function statusOfWait(state: State): Waiting | undefined {
  if (isUndecided(state)) return 'waiting_for_confirmation'
  if (hasQuestionBefore(state)) return 'waiting_for_input'
  if (waitsForClient(state)) return 'waiting_for_client'
  if (!waitsForSubagents(state)) return undefined
  const asks = (each: Subagent) => undecidedCalls(each.agent.request).length > 0 && !isDetached(state, each)
  return state.subagents.some(asks) ? 'waiting_for_confirmation' : 'waiting_for_client'
}

/** The run continues with the answer to a request of the agent: of a subagent, or of the main agent. */
export function afterAnswerTo(state: State, caller: Subagent | undefined, reason: string): EventDraft[] {
  const { status, request } = state
  const ofSubagents = status === 'waiting_for_confirmation' && caller && undecidedCalls(request).length === 0
  const isAwaited = status === 'waiting_for_client' || ofSubagents
  return isAwaited && !(caller && isDetached(state, caller)) ? [toStatus(state, 'running', reason)] : []
}

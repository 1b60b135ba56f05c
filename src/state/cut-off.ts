/**
 * What of the subagents survives a stop of the server, also when it is killed: one that waits for somebody, or has read
 * nothing of an answer yet, has lost nothing and stays; one that worked next to it was cut off, and ends. Pure.
 */
import type { EventDraft } from '../contract/events/event.ts'
import { answerCall, endBackground, inSubagent } from './drafts.ts'
import type { State, Subagent } from './state-shape.ts'
import { awaitedBy, findSubagent, rests, stateOf, waitsForSomebody } from './subagents.ts'

/** What the model reads of a call that may have begun. */
export const CUT_OFF = 'The server stopped before this call had ended; it is not known whether it began or what it did.'

/** The state without the subagents that were cut off. */
export const atRest = (state: State): State => {
  return { ...state, subagents: state.subagents.filter((each) => rests(state, each)) }
}

/** The state with those alone for whom the run waits: the others have their answer, and continue with it. */
export const waitingOn = (state: State): State => {
  return { ...state, subagents: state.subagents.filter((each) => waitsForSomebody(state, each)) }
}

/** True if the main agent has a subagent that was not cut off: their calls stay open. */
export const hasResting = (state: State): boolean => awaitedBy(state).some((each) => rests(state, each))

/** The server stopped, or the instance that had the conversation died and another one has taken it over. */
export type LostWorkReason = 'server_restart' | 'owner_lost'

export const isLostWorkReason = (reason: string): reason is LostWorkReason =>
  reason === 'server_restart' || reason === 'owner_lost'

/** Ends those in the background that were cut off, and of agents that wait on the subagents that were. */
export function endCutOff(state: State, why: LostWorkReason): EventDraft[] {
  const inBackground = endBackground(state, [], why, CUT_OFF, (each) => !rests(state, each))
  const ofMain = hasResting(state) ? endCallsCutOff(state, state, why) : []
  const ofOthers = atRest(state).subagents.flatMap((caller) =>
    inSubagent(endCallsCutOff(state, stateOf(state, caller), why), caller),
  )
  return [...inBackground, ...ofMain, ...ofOthers]
}

/** `own` is the state as the caller has it. */
function endCallsCutOff(state: State, own: State, stopReason: LostWorkReason): EventDraft[] {
  const isCutOff = (each: Subagent | undefined) => each !== undefined && !rests(state, each)
  const calls = own.openCalls.filter(({ toolUseId }) => isCutOff(findSubagent(state, toolUseId)))
  const interruption = { type: 'interrupted', why: 'server_restart', stopReason, message: CUT_OFF } as const
  return calls.flatMap((call) => answerCall(own, call, interruption))
}

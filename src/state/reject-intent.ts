/**
 * Decides what `reject` ends: the agents that ask, and the agents of which all subagents do. What others do, also in the
 * background, continues: a client executes its call, and a command runs. Pure.
 */
import { denialMessage, isUndecided } from './approval-intents.ts'
import {
  answerCall,
  answerOpenCalls,
  inSubagent,
  isWaiting,
  result,
  startForUnread,
  toStatus,
  waitsForUser,
} from './drafts.ts'
import type { EventDraft } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import { undecidedCalls } from './open-permission.ts'
import { hasQuestionBefore } from './question-intents.ts'
import { denyAll } from './request-drafts.ts'
import type { State, Subagent } from './state-shape.ts'
import { awaitedBy, findSubagent, stateOf } from './subagents.ts'
import { endOfCurrentTask } from './task-intents.ts'
import { waitOutside } from './waits.ts'

/** `reason` may be empty. `newRunId` is for the run of a queued message. `now` is milliseconds since 1970. */
export type RejectIntent = {
  kind: 'reject'
  reason: string
  newRunId: string
  now: number
  keyName?: string | undefined
}

export function decideReject(state: State, intent: RejectIntent): EventDraft[] | Problem {
  const isAsking = isUndecided(state) || hasQuestionBefore(state) || areRejected(state, awaitedBy(state))
  return isAsking ? rejectRun(state, intent) : rejectSubagents(state, intent)
}

/** The turn is refused as a whole: also calls that were already allowed, and questions. */
function rejectRun(state: State, { reason, newRunId, now, keyName }: RejectIntent): EventDraft[] {
  const results = answerOpenCalls(state, { ...unrun(reason), toQuestion: refusalToAnswer(reason) })
  const rejections = [...denyAll(state, reason, keyName), ...results]
  if (!isWaiting(state.status)) return rejections
  const waiting = { waitsForUser: waitsForUser(state, state.readThrough) }
  const endEvents = [result(state, 'rejected', now, waiting), ...endOfCurrentTask(state, 'rejected')]
  const another = startForUnread(state, 'idle', state.readThrough, newRunId)
  return [...rejections, ...endEvents, toStatus(state, 'idle', 'rejected'), ...another]
}

/** The run continues with the other subagents, or waits for what they wait for. */
function rejectSubagents(state: State, { reason }: RejectIntent): EventDraft[] | Problem {
  const rejectedSubagents = rejectedIn(state, undefined)
  if (rejectedSubagents.length === 0) return nothingPending()
  const drafts = rejectedSubagents.flatMap(({ toolUseId, callerId }) => {
    const caller = callerId === undefined ? undefined : findSubagent(state, callerId)
    const own = caller ? stateOf(state, caller) : state
    const endEvents = own.openCalls
      .filter((call) => call.toolUseId === toolUseId)
      .flatMap((call) => answerCall(own, call, unrun(reason)))
    return caller ? inSubagent(endEvents, caller) : endEvents
  })
  const others = { ...state, subagents: state.subagents.filter((each) => !isRejected(state, each)) }
  return isWaiting(state.status) ? [...drafts, ...waitOutside(others)] : drafts
}

/** The highest ones below the agent of this call: what is below them ends with them. */
const rejectedIn = (state: State, agentCallId: string | undefined): readonly Subagent[] =>
  awaitedBy(state, agentCallId).flatMap((each) =>
    isRejected(state, each) ? [each] : rejectedIn(state, each.toolUseId),
  )

const isRejected = (state: State, { agent, toolUseId }: Subagent): boolean =>
  undecidedCalls(agent.request).length > 0 || areRejected(state, awaitedBy(state, toolUseId))

const areRejected = (state: State, subagents: readonly Subagent[]): boolean =>
  subagents.length > 0 && subagents.every((each) => isRejected(state, each))

const unrun = (reason: string) => ({ type: 'rejected', why: 'rejected', message: denialMessage(reason) }) as const

const refusalToAnswer = (reason: string) => `The user refused to answer the question${reason ? `: ${reason}` : '.'}`

const nothingPending = () =>
  new Problem('nothing_pending', 'No tool call is waiting for a decision; GET requests lists what waits.')

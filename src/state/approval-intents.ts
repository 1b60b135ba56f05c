/** Decides the events of intents about permissions. Pure. No intent grants a call that was not approved as shown. */
import type { HookDecision, HookDecisions } from './hook-decisions.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { AskedToolUse, ToolDecision } from '../contract/values/permission.ts'
import { Problem } from '../contract/problem.ts'
import type { StoredDecision } from './open-permission.ts'
import { newDecisions, undecidedCalls } from './open-permission.ts'
import { answer, answerOpenCalls, inSubagent, toStatus } from './drafts.ts'
import { closePermission, permissionAnswer } from './request-drafts.ts'
import { hasQuestionBefore, UNANSWERED } from './question-intents.ts'
import { requestNotFound } from './request-problems.ts'
import type { State } from './state.ts'
import { findSubagent, isDetached, stateOf } from './subagents.ts'
import { rememberedRules } from './remembered-rules.ts'

/** The loop has reached calls that need a decision, and has stopped. */
export type RequestIntent = {
  kind: 'request_permission'
  runId: string
  requestId: string
  toolUses: readonly AskedToolUse[]
  /** The call of the subagent that asks; absent for the main agent. */
  subagentOf?: string | undefined
  /** What hooks have decided already. */
  hooked?: HookDecisions | undefined
}
export type DecideIntent = {
  kind: 'decide'
  requestId: string
  decisions: readonly ToolDecision[]
  /** The name of the API key of the client. */
  keyName?: string | undefined
}
/**
 * All calls of a turn that have not begun are decided before any of them runs. If hooks have decided all of them, the run
 * continues. If the hooks were replaced meanwhile, nothing is stored: the run continues, and asks again.
 */
export function openRequest(state: State, intent: RequestIntent): EventDraft[] {
  const { subagentOf } = intent
  if (subagentOf !== undefined) {
    const subagent = findSubagent(state, subagentOf)
    // The run waits when all of its subagents do.
    return subagent ? inSubagent(permissionRequestOf(stateOf(state, subagent), intent, []), subagent) : []
  }
  if (state.status !== 'running' || state.run?.id !== intent.runId) return []
  return permissionRequestOf(state, intent, [toStatus(state, 'waiting_for_confirmation', 'permission_request')])
}

/** `waits` follows if hooks have not decided all calls. */
function permissionRequestOf(
  state: State,
  { runId, requestId, toolUses, hooked }: RequestIntent,
  waits: readonly EventDraft[],
): EventDraft[] {
  if (hooked && hooked.hooksAt !== state.hooksAt) return []
  const { decisions = [] } = hooked ?? {}
  const request: EventDraft = {
    type: 'RequestOpened',
    source: 'environment',
    run_id: runId,
    kind: 'permission',
    request_id: requestId,
    tool_use_ids: toolUses.map(({ tool_use_id }) => tool_use_id),
    payload: { tool_uses: [...toolUses] },
  }
  const decidedEvents = toolUses.flatMap((call) => hookDecided(state, { call, runId, requestId }, decisions))
  const isDecided = ({ tool_use_id }: AskedToolUse) => decisions.some(({ toolUseId }) => toolUseId === tool_use_id)
  const areAll = decisions.length > 0 && toolUses.every(isDecided)
  return [request, ...decidedEvents, ...(areAll ? [] : waits)]
}

type HookedCall = { readonly call: AskedToolUse; readonly runId: string; readonly requestId: string }

/** The decision of a hook, and the result of a call that it denied. */
function hookDecided(
  state: State,
  { call, runId, requestId }: HookedCall,
  decisions: readonly HookDecision[],
): EventDraft[] {
  const { tool_use_id, input_hash } = call
  const hookDecision = decisions.find(({ toolUseId }) => toolUseId === tool_use_id)
  if (!hookDecision) return []
  const { behavior, updatedInput, message, decidedBy } = hookDecision
  const decision: StoredDecision = {
    tool_use_id,
    input_hash,
    behavior,
    ...(updatedInput && { updated_input: updatedInput }),
    ...(message !== undefined && { message }),
  }
  const answerEvent: EventDraft = {
    type: 'RequestAnswered',
    source: 'environment',
    run_id: runId,
    kind: 'permission',
    request_id: requestId,
    tool_use_ids: [tool_use_id],
    answer: { decisions: [decision] },
    answered_by: decidedBy === 'callback' ? 'mode' : decidedBy,
  }
  const deniedCalls = behavior === 'deny' ? state.openCalls.filter(({ toolUseId }) => toolUseId === tool_use_id) : []
  const reason =
    decidedBy === 'callback'
      ? `${message} It needs a permission: ${call.reason}.`
      : `A hook did not allow this call${message ? `: ${message}` : '.'}`
  return [answerEvent, ...deniedCalls.map((call) => answer(call, 'denied', reason))]
}

/** Decides calls of the open request; the run continues after the last decision, even if all of them are denials. */
export function decidePermission(state: State, intent: DecideIntent): EventDraft[] | Problem {
  const subagent = state.subagents.find(({ agent }) => agent.request?.id === intent.requestId)
  const continues = state.status === 'waiting_for_confirmation' ? [toStatus(state, 'running', 'decided')] : []
  if (!subagent) return decidedBy(state, intent, continues)
  const decisionEvents = decidedBy(
    stateOf(state, subagent),
    intent,
    undecidedCalls(state.request).length > 0 ? [] : continues,
  )
  if (decisionEvents instanceof Problem) return decisionEvents
  return decisionEvents.flatMap((draft) => {
    if (draft.type === 'ConfigUpdate') return [draft]
    if (draft.type !== 'StatusUpdate') return inSubagent([draft], subagent)
    return isDetached(state, subagent) ? [] : [draft]
  })
}

/** `continues` follows the last decision. */
function decidedBy(
  state: State,
  { requestId, decisions, keyName }: DecideIntent,
  continues: readonly EventDraft[],
): EventDraft[] | Problem {
  const { request } = state
  if (request?.id !== requestId) return requestNotFound()
  const storedDecisions = newDecisions(request, decisions)
  if (storedDecisions instanceof Problem) return storedDecisions
  const ruleEvents = rememberedRules(state, request, decisions, storedDecisions)
  if (ruleEvents instanceof Problem) return ruleEvents
  if (storedDecisions.length === 0) return []
  const answerEvent = permissionAnswer(state, requestId, storedDecisions, keyName)
  if (undecidedCalls(request).length > storedDecisions.length) return [answerEvent, ...ruleEvents]
  const all = new Map(request.calls.map((call) => [call.toolUseId, call.decision]))
  for (const decision of storedDecisions) all.set(decision.tool_use_id, decision)
  const denials = state.openCalls
    .filter((call) => all.get(call.toolUseId)?.behavior === 'deny')
    .map((call) => answer(call, 'denied', denialMessage(all.get(call.toolUseId)?.message)))
  return [answerEvent, ...ruleEvents, ...denials, ...continues]
}

const NOT_BEGUN = 'superseded: the user wrote a message before this call began; it did not run'
const SUPERSEDED = 'superseded: the user wrote a message instead of deciding'

export const supersede = (state: State): EventDraft[] => [
  ...closePermission(state, 'message', SUPERSEDED),
  ...answerOpenCalls(state, {
    type: 'rejected',
    why: 'message',
    message: hasQuestionBefore(state) ? NOT_BEGUN : SUPERSEDED,
    toQuestion: UNANSWERED,
  }),
]

export const denialMessage = (message: string | undefined) =>
  `The user did not allow this call${message ? `: ${message}` : '.'}`

export const isUndecided = (state: State) => undecidedCalls(state.request).length > 0

/** What the decisions about calls do to them, as a pure fold. */
import type { ToolCall } from './tool-call.ts'
import type { Status } from '../contract/events/status.ts'
import type { OpenPermission, PermissionAnswered, StoredDecision } from './open-permission.ts'
import { releasedRequest, withDecision } from './open-permission.ts'
import { withInput } from './hooked-calls.ts'

type DecidedState = {
  readonly status: Status
  readonly openCalls: readonly ToolCall[]
  readonly request: OpenPermission | undefined
}

/** Returns the calls as they will run: with the input from their decisions. */
export function afterDecisions<S extends DecidedState>(state: S, event: PermissionAnswered): S {
  const decidedState = event.answer.decisions.reduce(
    (before, decision) => afterDecision(before, event, decision),
    state,
  )
  // While a run is active, only hooks decide, and it continues: nothing else releases the calls.
  return state.status === 'running' ? { ...decidedState, request: releasedRequest(decidedState.request) } : decidedState
}

function afterDecision<S extends DecidedState>(state: S, event: PermissionAnswered, decision: StoredDecision): S {
  const { tool_use_id, updated_input: input } = decision
  const request = withDecision(state.request, event.request_id, decision)
  const decidedCall = request?.calls.find(({ toolUseId }) => toolUseId === tool_use_id)
  const isSame = input === undefined && decidedCall?.definitionHash === undefined
  if (isSame || request === state.request) return { ...state, request }
  const openCalls = state.openCalls.map((call) => {
    if (call.toolUseId !== tool_use_id) return call
    const next = input === undefined ? call : withInput(call, input, event.answered_by)
    return {
      ...next,
      ...(decidedCall?.definitionHash !== undefined && { approvedDefinition: decidedCall.definitionHash }),
    }
  })
  return { ...state, openCalls, request }
}

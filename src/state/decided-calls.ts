/** What a decision does to the call that it is about, as a pure fold. */
import type { ToolCall } from './tool-call.ts'
import type { EventOf } from '../contract/events/event.ts'
import type { Status } from '../contract/events/status.ts'
import type { OpenRequest } from './open-request.ts'
import { releasedRequest, withDecision } from './open-request.ts'
import { withInput } from './hooked-calls.ts'

type Decided = {
  readonly status: Status
  readonly openCalls: readonly ToolCall[]
  readonly request: OpenRequest | undefined
}

/** Returns the call as it will run: with the input from the decision. */
export function afterDecision<S extends Decided>(state: S, event: EventOf<'PermissionDecision'>): S {
  const { updated_input: input } = event
  const decided = withDecision(state.request, event)
  // While a run is active, only hooks decide, and it continues: nothing else releases the calls.
  const request = state.status === 'running' ? releasedRequest(decided) : decided
  const asked = decided?.calls.find(({ toolUseId }) => toolUseId === event.tool_use_id)
  const isSame = input === undefined && asked?.definitionHash === undefined
  if (isSame || decided === state.request) return { ...state, request }
  const openCalls = state.openCalls.map((call) => {
    if (call.toolUseId !== event.tool_use_id) return call
    const next = input === undefined ? call : withInput(call, event)
    return { ...next, ...(asked?.definitionHash !== undefined && { approvedDefinition: asked.definitionHash }) }
  })
  return { ...state, openCalls, request }
}

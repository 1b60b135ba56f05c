/** What waits for the user: a list that grows with requests and shrinks with answers, from whichever client they come. */
import type { EventOf } from '../../../contract/events/event.ts'
import type { Approval, ChatState, AskedByCall } from './chat-state.ts'
import { addNotice, changeCall, hasCall } from './items.ts'

/** Models use ids of calls again. */
export const approvalId = ({ requestId, call }: Pick<Approval, 'requestId' | 'call'>): string =>
  `${requestId} ${call.tool_use_id}`

export function ask(
  state: ChatState,
  { request_id, tool_uses, agent_name: agent }: EventOf<'PermissionRequest'>,
): ChatState {
  const known = new Set(state.approvals.map(approvalId))
  const added = tool_uses.filter((call) => !known.has(approvalId({ requestId: request_id, call })))
  return {
    ...state,
    approvals: [...state.approvals, ...added.map((call): Approval => ({ requestId: request_id, call, agent }))],
  }
}

export function afterDecision(state: ChatState, event: EventOf<'PermissionDecision'>): ChatState {
  const { tool_use_id: id, behavior, decided_by, updated_input } = event
  const isDecided = ({ requestId, call }: Approval) => requestId === event.request_id && call.tool_use_id === id
  const waited = state.approvals.find(isDecided)
  const approvals = state.approvals.filter((approval) => !isDecided(approval))
  const decided = hasCall(state, id)
    ? changeCall({ ...state, approvals }, id, (call) => ({
        ...call,
        decision: behavior,
        ...(updated_input !== undefined && { input: updated_input }),
      }))
    : { ...state, approvals }
  if (!waited || !state.isLive || decided_by !== 'user' || state.answeredHere.has(approvalId(waited))) return decided
  const verb = behavior === 'allow' ? 'approved' : 'denied'
  return addNotice(decided, 'info', `${waited.call.name} was ${verb} in another client.`)
}

export function askQuestion(state: ChatState, event: AskedByCall): ChatState {
  if (state.questions.some(({ question_id }) => question_id === event.question_id)) return state
  return { ...state, questions: [...state.questions, event] }
}

/** By its answer, or by the result of the call that asked. */
export function closeQuestion(state: ChatState, event: EventOf<'UserAnswer' | 'ToolResult'>): ChatState {
  const closed = state.questions.find(({ question_id, tool_use_id }) =>
    event.type === 'UserAnswer' ? question_id === event.question_id : tool_use_id === event.tool_use_id,
  )
  if (!closed) return state
  const questions = state.questions.filter((question) => question !== closed)
  if (!state.isLive || event.type === 'ToolResult' || state.answeredHere.has(closed.question_id))
    return { ...state, questions }
  const answer = Object.values(event.answers).flat().join(', ')
  return addNotice({ ...state, questions }, 'info', `The question was answered in another client: ${answer}`)
}

export function askNetwork(state: ChatState, event: EventOf<'NetworkRequest'>): ChatState {
  if (state.networkApprovals.some(({ request_id }) => request_id === event.request_id)) return state
  return { ...state, networkApprovals: [...state.networkApprovals, event] }
}

export function afterNetworkDecision(state: ChatState, event: EventOf<'NetworkDecision'>): ChatState {
  const { request_id, behavior, decided_by, host, port } = event
  const waited = state.networkApprovals.some((request) => request.request_id === request_id)
  const networkApprovals = state.networkApprovals.filter((request) => request.request_id !== request_id)
  const decided = { ...state, networkApprovals }
  if (!waited || !state.isLive || state.answeredHere.has(request_id)) return decided
  const verb = behavior === 'allow' ? 'allowed' : 'refused'
  const by = decided_by === 'user' ? 'in another client' : `by the server (${decided_by})`
  return addNotice(decided, 'info', `${host}:${port} was ${verb} ${by}.`)
}

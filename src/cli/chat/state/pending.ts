/** What waits for the user: a list that grows with requests and shrinks with answers, from whichever client they come. */
import type { EventOf } from '../../../contract/events/event.ts'
import { requestOf } from '../../../contract/events/opened-request.ts'
import { decisionOf, hasForm, isForPeople } from '../../../contract/requests/request-forms.ts'
import type { OpenRequestOf } from '../../../contract/request.ts'
import type { Approval, ChatState, ShownRequest } from './chat-state.ts'
import { addNotice, changeCall, hasCall } from './items.ts'

/** Models use ids of calls again. */
export const approvalId = ({ requestId, call }: Pick<Approval, 'requestId' | 'call'>): string =>
  `${requestId} ${call.tool_use_id}`

/** The calls of a permission request that wait for a decision, each with what its panel needs. */
export const approvalsIn = ({ request_id, agent_name, payload }: OpenRequestOf<'permission'>): Approval[] =>
  payload.tool_uses
    .filter(({ decision }) => decision === undefined)
    .map((call) => ({ requestId: request_id, call, agent: agent_name }))

export function addRequest(state: ChatState, event: EventOf<'RequestOpened'>): ChatState {
  const request = requestOf(event)
  if (request.kind === 'client_tool') return waitForClient(state, request)
  if (!isForPeople(request) || state.requests.some(({ request_id }) => request_id === request.request_id)) return state
  return { ...state, requests: [...state.requests, request] }
}

export function afterAnswer(state: ChatState, event: EventOf<'RequestAnswered'>): ChatState {
  const closedRequest = state.requests.find(({ request_id }) => request_id === event.request_id)
  if (event.kind === 'permission')
    return event.answer.decisions.reduce((before, decision) => afterDecision(before, event, decision), state)
  if (hasForm(event, 'questions')) {
    const answer = Object.values(event.answer.answers).flat().join(', ')
    return withoutRequest(state, closedRequest, `The question was answered in another client: ${answer}`)
  }
  // Nothing of other kinds is shown; the result of a client tool follows.
  if (!hasForm(event, 'decision') || !closedRequest || !hasForm(closedRequest, 'decision')) return state
  const verb = event.answer.behavior === 'allow' ? 'allowed' : 'refused'
  const by = event.answered_by === 'user' ? 'in another client' : 'by the server (policy)'
  return withoutRequest(state, closedRequest, `${decisionOf(closedRequest).subject} was ${verb} ${by}.`)
}

export function afterClosing(state: ChatState, event: EventOf<'RequestClosed'>): ChatState {
  const closedRequest = state.requests.find(({ request_id }) => request_id === event.request_id)
  if (!closedRequest || !hasForm(closedRequest, 'decision')) return withoutRequest(state, closedRequest)
  const { subject } = decisionOf(closedRequest)
  return withoutRequest(state, closedRequest, `${subject} was refused by the server (${event.reason}).`)
}

/** A call that has its result asks nothing any more. */
export const afterCallResult = (state: ChatState, { tool_use_id }: EventOf<'ToolResult'>): ChatState => {
  const isOf = ({ kind, tool_use_ids }: ShownRequest) => kind !== 'permission' && tool_use_ids.includes(tool_use_id)
  return withoutRequest(state, state.requests.find(isOf))
}

function afterDecision(
  state: ChatState,
  { request_id, answered_by }: EventOf<'RequestAnswered'>,
  { tool_use_id: id, behavior, updated_input }: LoggedDecision,
): ChatState {
  const isAsked = (request: ShownRequest) => request.kind === 'permission' && request.request_id === request_id
  const closedRequest = state.requests.find(isAsked)
  const approval =
    closedRequest?.kind === 'permission'
      ? approvalsIn(closedRequest).find(({ call }) => call.tool_use_id === id)
      : undefined
  const requests = state.requests.flatMap((request) =>
    request === closedRequest ? withDecision(closedRequest, id, behavior) : [request],
  )
  const decidedState = hasCall(state, id)
    ? changeCall({ ...state, requests }, id, (call) => ({
        ...call,
        decision: behavior,
        ...(updated_input !== undefined && { input: updated_input }),
      }))
    : { ...state, requests }
  const isElsewhere = state.isLive && answered_by === 'user'
  if (!approval || !isElsewhere || state.answeredHere.has(approvalId(approval))) return decidedState
  const verb = behavior === 'allow' ? 'approved' : 'denied'
  return addNotice(decidedState, 'info', `${approval.call.name} was ${verb} in another client.`)
}

type LoggedDecision = Extract<EventOf<'RequestAnswered'>, { kind: 'permission' }>['answer']['decisions'][number]

/** Nothing when no call of it waits any more. */
function withDecision(request: ShownRequest, id: string, decision: LoggedDecision['behavior']): ShownRequest[] {
  if (request.kind !== 'permission') return [request]
  const tool_uses = request.payload.tool_uses.map((use) => (use.tool_use_id === id ? { ...use, decision } : use))
  const next = { ...request, payload: { tool_uses } }
  return approvalsIn(next).length > 0 ? [next] : []
}

/** Says what happened, unless this client did it. */
function withoutRequest(state: ChatState, closedRequest: ShownRequest | undefined, text?: string): ChatState {
  if (!closedRequest) return state
  const next = { ...state, requests: state.requests.filter((request) => request !== closedRequest) }
  const isSilent = text === undefined || !state.isLive || state.answeredHere.has(closedRequest.request_id)
  return isSilent ? next : addNotice(next, 'info', text)
}

function waitForClient(state: ChatState, { tool_use_ids, payload }: OpenRequestOf<'client_tool'>): ChatState {
  const [id = ''] = tool_use_ids
  return changeCall(state, id, (call) => ({ ...call, name: payload.name, note: 'waits for a client that executes it' }))
}

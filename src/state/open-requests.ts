/** The requests of a conversation that wait, as a pure fold of its log, in the form that clients see. */
import type { EventOf } from '../contract/events/event.ts'
import { requestOf } from '../contract/events/opened-request.ts'
import type { OpenRequest, OpenRequestOf } from '../contract/request.ts'
import { restOf } from '../contract/requests/request-kinds.ts'
import type { OpenPermission } from './open-permission.ts'
import type { State, StoredRequest } from './state-shape.ts'
import { openPermissions } from './subagents.ts'

export type OpenQuestion = OpenRequestOf<'question'>

type Requests = readonly StoredRequest[]
type Ending = EventOf<'RequestAnswered' | 'RequestClosed'>

export function requestsAfter(requests: Requests, event: EventOf<'RequestOpened'> | Ending): Requests {
  const others = requests.filter(({ request_id }) => request_id !== event.request_id)
  if (event.type !== 'RequestOpened') return others
  const request = requestOf(event)
  return request.kind === 'permission' ? others : [...others, request]
}

/** A call that has its result waits for nothing any more. */
export const requestsAfterResult = (requests: Requests, toolUseId: string): Requests =>
  requests.length > 0 ? requests.filter(({ tool_use_ids }) => !tool_use_ids.includes(toolUseId)) : requests

export const isQuestion = (requests: Requests, toolUseId: string): boolean =>
  requests.some(({ kind, tool_use_ids }) => kind === 'question' && tool_use_ids.includes(toolUseId))

/** Questions that wait for the user, each of an open call: before it begins, or while it runs. */
export const questionsOf = ({ requests }: Pick<State, 'requests'>): OpenQuestion[] =>
  requests.filter((request) => request.kind === 'question')

type Waiting = Pick<State, 'request' | 'requests' | 'subagents'>

/** Calls that clients execute. */
export const clientCallsOf = ({ requests }: Pick<State, 'requests'>): OpenRequestOf<'client_tool'>[] =>
  requests.filter((request) => request.kind === 'client_tool')

/** Returns those that wait although the conversation is not open: the others end with what holds them. */
export const restingRequests = (state: Waiting): OpenRequest[] =>
  openRequests(state).filter(({ kind }) => restOf(kind) !== undefined)

/** All that wait while the conversation is open somewhere, as its log shows them. */
export const openRequests = (state: Waiting): OpenRequest[] => [...permissionRequests(state), ...state.requests]

/** True if it ends with the results of its calls. What belongs to no call outlives the turn, and ends with the server. */
export const isOfCall = ({ tool_use_ids }: StoredRequest): boolean => tool_use_ids.length > 0

/** Returns the times when the resting requests are closed without an answer, in milliseconds since 1970. */
export const deadlinesOf = (state: Pick<State, 'requests'>): number[] =>
  clientCallsOf(state).flatMap(({ deadline }) => (deadline === undefined ? [] : [Date.parse(deadline)]))

/** Returns the first of them. */
export function nextDeadline(state: Pick<State, 'requests'>): number | undefined {
  const times = deadlinesOf(state)
  return times.length > 0 ? Math.min(...times) : undefined
}

/** Returns the time when the oldest of these was opened, in milliseconds since 1970; undefined if none waits. */
export function waitsSince(waiting: readonly OpenRequest[]): number | undefined {
  const times = waiting.map(({ opened_at }) => Date.parse(opened_at))
  return times.length > 0 ? Math.min(...times) : undefined
}

export function permissionRequests(state: Pick<State, 'request' | 'subagents'>): OpenRequestOf<'permission'>[] {
  return openPermissions(state).map((request) => {
    const subagent = state.subagents.find(({ agent }) => agent.request === request)
    const agent = subagent && { parent_tool_use_id: subagent.toolUseId, agent_name: subagent.name }
    return { ...permissionView(request), ...agent }
  })
}

function permissionView({ id, openedAt, calls }: OpenPermission): OpenRequestOf<'permission'> {
  const tool_uses = calls.map(({ toolUseId, name, input, inputHash, definitionHash, reason, rules, decision }) => ({
    tool_use_id: toolUseId,
    name,
    input,
    input_hash: inputHash,
    ...(definitionHash !== undefined && { definition_hash: definitionHash }),
    reason,
    ...(rules && { rules: [...rules] }),
    ...(decision && { decision: decision.behavior }),
  }))
  const tool_use_ids = calls.map(({ toolUseId }) => toolUseId)
  return { kind: 'permission', request_id: id, opened_at: openedAt, tool_use_ids, payload: { tool_uses } }
}

/** Drafts of the events that open, answer and close requests. */
import type { EventDraft } from '../contract/events/event.ts'
import type { CloseReason } from '../contract/events/request-events.ts'
import type { StoredDecision } from './open-permission.ts'
import { undecidedCalls } from './open-permission.ts'
import { isOfCall } from './open-requests.ts'
import type { State, StoredRequest } from './state-shape.ts'

const inRun = ({ run }: Pick<State, 'run'>) => (run ? { run_id: run.id } : {})

/** Closes the permission request of the agent, if calls of it are not decided: they count as denied. */
export function closePermission(state: State, reason: CloseReason, message: string): EventDraft[] {
  const { request } = state
  const calls = undecidedCalls(request)
  if (!request || calls.length === 0) return []
  return [
    {
      type: 'RequestClosed',
      source: 'environment',
      ...inRun(state),
      kind: 'permission',
      request_id: request.id,
      tool_use_ids: calls.map(({ toolUseId }) => toolUseId),
      reason,
      message,
    },
  ]
}

/** The user denies every call of the open permission request that is not decided. */
export function denyAll(state: State, message: string, keyName: string | undefined): EventDraft[] {
  const { request } = state
  const decisions = undecidedCalls(request).map(({ toolUseId, inputHash }) => ({
    tool_use_id: toolUseId,
    input_hash: inputHash,
    behavior: 'deny' as const,
    message,
  }))
  return request && decisions.length > 0 ? [permissionAnswer(state, request.id, decisions, keyName)] : []
}

/** What the user has decided. */
export const permissionAnswer = (
  state: State,
  requestId: string,
  decisions: readonly StoredDecision[],
  keyName: string | undefined,
): EventDraft => ({
  type: 'RequestAnswered',
  source: 'user',
  ...inRun(state),
  kind: 'permission',
  request_id: requestId,
  tool_use_ids: decisions.map(({ tool_use_id }) => tool_use_id),
  answer: { decisions: [...decisions] },
  ...byKey(keyName),
})

/** A client has answered. */
export const byKey = (keyName: string | undefined) => ({
  answered_by: 'user' as const,
  ...(keyName !== undefined && { key_name: keyName }),
})

/** Closes what belongs to no call: what held it ended with the server, or belongs to another conversation. */
export const closeWithoutCall = ({ requests }: Pick<State, 'requests'>, reason: CloseReason): EventDraft[] =>
  requests.filter((request) => !isOfCall(request)).map((request) => closing(request, reason))

export const closing = (
  { kind, request_id, tool_use_ids }: Pick<StoredRequest, 'kind' | 'request_id' | 'tool_use_ids'>,
  reason: CloseReason,
): EventDraft => ({ type: 'RequestClosed', source: 'environment', kind, request_id, tool_use_ids, reason })

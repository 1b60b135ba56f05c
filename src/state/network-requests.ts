/** Pending network requests as a pure fold of the log, and how a server start closes them. */
import type { EventDraft, EventOf } from '../contract/events/event.ts'

export type OpenNetworkRequest = { readonly id: string; readonly host: string; readonly port: number }

export function networkRequestsAfter(
  open: readonly OpenNetworkRequest[],
  event: EventOf<'NetworkRequest' | 'NetworkDecision'>,
): readonly OpenNetworkRequest[] {
  const others = open.filter(({ id }) => id !== event.request_id)
  return event.type === 'NetworkDecision'
    ? others
    : [...others, { id: event.request_id, host: event.host, port: event.port }]
}

type Decided = Pick<EventOf<'NetworkDecision'>, 'behavior' | 'decided_by'>

export function networkDecision({ id, host, port }: OpenNetworkRequest, decided: Decided): EventDraft {
  const source = decided.decided_by === 'user' ? 'user' : 'environment'
  return { type: 'NetworkDecision', source, request_id: id, host, port, ...decided }
}

/** Denies leftover requests: their connections ended with the server, or belong to another conversation. */
export const denyLeftRequests = (open: readonly OpenNetworkRequest[]): EventDraft[] =>
  open.map((request) => networkDecision(request, { behavior: 'deny', decided_by: 'server_restart' }))

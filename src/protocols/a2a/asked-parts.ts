/** What a task waits for, as parts of its status: words for people, and data that an answer repeats. */
import type { EventOf } from '../../contract/events/event.ts'
import { lineOfRequest } from '../../contract/requests/request-kinds.ts'
import type { WaitingCalls } from '../items/turn-requests.ts'
import type { A2aPart } from './a2a-objects.ts'

export function partsOfRequest({ request, calls }: WaitingCalls): A2aPart[] {
  const openPart = stillAsked(request, calls)
  const { request_id, kind, deadline, payload } = openPart
  const data = { request_id, kind, ...(deadline !== undefined && { deadline }), ...payload }
  return [{ text: lineOfRequest(openPart) }, { data, mediaType: 'application/json' }]
}

/** Leaves out the calls that are decided. */
function stillAsked(request: EventOf<'RequestOpened'>, calls: ReadonlySet<string>): EventOf<'RequestOpened'> {
  if (request.kind !== 'permission') return request
  const tool_uses = request.payload.tool_uses.filter(({ tool_use_id: id }) => calls.has(id))
  return { ...request, payload: { ...request.payload, tool_uses } }
}

/** The request that a `RequestOpened` event opens, in the form of lists. */
import type { EventOf } from './event.ts'
import type { StoredKind } from '../requests/request-kinds.ts'
import type { OpenRequestOf } from '../request.ts'

export function requestOf(event: EventOf<'RequestOpened'>): OpenRequestOf<StoredKind> {
  const { request_id, deadline, tool_use_ids, parent_tool_use_id, agent_name, timestamp: opened_at } = event
  const agent = parent_tool_use_id !== undefined && { parent_tool_use_id, agent_name }
  const request = { request_id, opened_at, ...(deadline !== undefined && { deadline }), tool_use_ids, ...agent }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and payload belong together
  return { ...request, kind: event.kind, payload: event.payload } as OpenRequestOf<StoredKind>
}

/** Closed permission requests: their decisions are stored only in the log. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { repeats } from '../../state/open-request.ts'

const TYPES = new Set(['PermissionRequest', 'PermissionDecision'])
const PAGE = 1000

/** Checks a repeated decision: throws a `Problem` unless it matches the recorded one. */
export async function requireSameInLog(
  log: EventLog,
  requestId: string,
  decisions: readonly ToolDecision[],
): Promise<void> {
  const made = await decisionsOf(log, requestId)
  if (!made) throw permissionNotFound()
  const answer = repeats(made, decisions)
  if (answer instanceof Problem) throw answer
}

/** Reads backwards from the newest event to the request itself; returns undefined if there was no such request. */
async function decisionsOf(log: EventLog, requestId: string): Promise<EventOf<'PermissionDecision'>[] | undefined> {
  const made: EventOf<'PermissionDecision'>[] = []
  for await (const { events } of readPages(log, { types: TYPES, order: 'desc', limit: PAGE })) {
    for (const { event } of events) {
      if (event.type === 'PermissionDecision' && event.request_id === requestId) made.push(event)
      if (event.type === 'PermissionRequest' && event.request_id === requestId) return made
    }
  }
  return undefined
}

export const permissionNotFound = () =>
  new Problem('permission_not_found', 'There is no request with this id; GET permissions lists the pending ones.')

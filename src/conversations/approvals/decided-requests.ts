/** Requests that are over: what was decided of them is in the log, and only there. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { repeats } from './open-request.ts'

const TYPES = new Set(['PermissionRequest', 'PermissionDecision'])
const PAGE = 1000

/** For a decision that comes again: throws a `Problem` unless it says what was decided then. */
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

/** From the newest back to the request itself; undefined when there was no such request. */
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
  new Problem('permission_not_found', 'There is no request with this id; GET permissions shows what waits.')

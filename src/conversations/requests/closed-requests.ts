/** Requests that do not wait any more: how they ended is only in the log. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { StoredKind } from '../../contract/requests/request-kinds.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { isOfAnotherKind } from '../../state/request-problems.ts'

export type ClosedRequest<K extends StoredKind> = {
  readonly opened: Extract<EventOf<'RequestOpened'>, { kind: K }>
  /** The answers in the order of the log. */
  readonly answers: readonly Extract<EventOf<'RequestAnswered'>, { kind: K }>[]
}

const TYPES: ReadonlySet<string> = new Set(['RequestOpened', 'RequestAnswered'])
const PAGE = 1000

/**
 * Reads the log backwards, from its newest event to the opening of the request. Returns undefined if the request was
 * never opened. Throws a `Problem` if the request is of another kind.
 */
export async function findClosed<K extends StoredKind>(
  log: Pick<EventLog, 'read'>,
  kind: K,
  requestId: string,
): Promise<ClosedRequest<K> | undefined> {
  const answers: Event[] = []
  for await (const { events } of readPages(log, { types: TYPES, order: 'desc', limit: PAGE })) {
    for (const { event } of events) {
      if (!isOf(event, requestId)) continue
      if (event.kind !== kind) throw isOfAnotherKind(event.kind)
      if (event.type === 'RequestAnswered') answers.unshift(event)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are of this kind
      else return { opened: event, answers } as unknown as ClosedRequest<K>
    }
  }
  return undefined
}

const isOf = (event: Event, requestId: string): event is EventOf<'RequestOpened' | 'RequestAnswered'> =>
  'request_id' in event && event.request_id === requestId

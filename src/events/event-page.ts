/** Reads pages of a log for lists: takes an opaque cursor, returns the events and the next cursor. */
import type { ListEvents } from '../contract/events/events-api.ts'
import { Problem } from '../contract/problem.ts'
import { decodePageId, encodePageId } from '../lib/page-id.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { ReadOptions, StoredEvent, StoredLog } from './event-store.ts'

/** `nextPageId` is null when the range is exhausted. Throws a `Problem` for an invalid `page_id`. */
export async function readEventPage(
  log: Pick<StoredLog, 'read'>,
  query: ListEvents,
): Promise<{ events: readonly StoredEvent[]; nextPageId: string | null }> {
  const { page_id, after_seq, before_seq, ...filter } = query
  const page = await log.read({
    ...withoutUndefined(filter),
    order: query.order,
    limit: query.limit,
    ...withoutUndefined({ afterSeq: after_seq, beforeSeq: before_seq }),
    ...(page_id !== undefined && resumeAt(page_id, query)),
  })
  return {
    events: page.events,
    nextPageId: page.scannedTo === undefined ? null : encodePageId([query.order, String(page.scannedTo)]),
  }
}

function resumeAt(
  pageId: string,
  { order, after_seq, before_seq }: ListEvents,
): Pick<ReadOptions, 'afterSeq' | 'beforeSeq'> {
  const position = decodePageId(pageId)
  const seq = Number(position?.[1])
  if (!position || position[0] !== order || !Number.isSafeInteger(seq) || seq < 0) {
    throw new Problem(
      'invalid_cursor',
      'page_id was not issued for this order; leave it out to start from the first page.',
    )
  }
  return order === 'asc'
    ? { afterSeq: Math.max(seq, after_seq ?? 0) }
    : { beforeSeq: Math.min(seq, before_seq ?? Infinity) }
}

/** Reads pages of a log for lists: takes an opaque cursor, returns the events and the next cursor. */
import type { ListEvents } from '../contract/events-api.ts'
import { Problem } from '../contract/problem.ts'
import { decodePageId, encodePageId } from '../lib/page-id.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { RewoundSpan } from '../contract/events/rewound.ts'
import { holds } from '../contract/events/rewound.ts'
import { cutTexts } from './cut-texts.ts'
import type { ReadOptions, StoredEvent, StoredLog } from './event-store.ts'

/**
 * What a page may have, if it has more than one event: an answer is in memory until the client has read it, and large ones
 * occupy the server.
 */
const MAX_PAGE_BYTES = 2 * 1024 * 1024

/**
 * `rewound`: where events do not hold any more. A page of active events is empty only at the end of the range. `nextPageId` is
 * null when the range is exhausted. Throws a `Problem` for an invalid `page_id`.
 */
export async function readEventPage(
  log: Pick<StoredLog, 'read'>,
  query: ListEvents,
  rewound: readonly RewoundSpan[],
): Promise<{ events: readonly StoredEvent[]; nextPageId: string | null }> {
  const { page_id, after_seq, before_seq, order, limit, active, max_text, ...filter } = query
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const spans = active === true ? rewound : []
  let position = page_id === undefined ? {} : resumeAt(page_id, query)
  for (;;) {
    const page = await log.read({
      ...withoutUndefined(filter),
      order,
      limit,
      // Most of what is scanned is not returned if there is a filter.
      ...(!isFiltered && max_text === undefined && { maxBytes: MAX_PAGE_BYTES }),
      ...withoutUndefined({ afterSeq: after_seq, beforeSeq: before_seq }),
      ...position,
    })
    const readEvents = beginningOf(
      max_text === undefined ? page.events : page.events.map((one) => cutTexts(one, max_text)),
    )
    const last = readEvents.length < page.events.length ? readEvents.at(-1)?.seq : page.scannedTo
    const events = readEvents.filter((event) => holds(spans, event))
    if (last === undefined) return { events, nextPageId: null }
    const next = encodePageId([order, String(last)])
    if (events.length > 0 || spans.length === 0) return { events, nextPageId: next }
    position = resumeAt(next, query)
  }
}

/** Returns the events that are a page, at least one if there are any. */
function beginningOf(events: readonly StoredEvent[]): readonly StoredEvent[] {
  let bytes = 0
  const end = events.findIndex(({ json }, at) => (bytes += json.length) > MAX_PAGE_BYTES && at > 0)
  return end < 0 ? events : events.slice(0, end)
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

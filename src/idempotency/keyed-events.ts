/** Finds keys in the events of the last day. The key and its result are stored together or not at all. */
import type { Event } from '../contract/events/event.ts'
import type { ReadOptions, StoredLog } from '../events/event-store.ts'
import { readPages } from '../events/read-pages.ts'
import { KEY_LIFETIME_MS } from '../state/idempotency.ts'

const PAGE = 1000

/** Yields events in the requested order; leaving the loop ends the search. */
export async function* eventsWithKey<E extends Event & { readonly idempotency_key?: string | undefined }>(
  log: Pick<StoredLog, 'read'>,
  key: string,
  isOf: (event: Event) => event is E,
  range: Pick<ReadOptions, 'types' | 'order' | 'beforeSeq'>,
  now = Date.now(),
): AsyncGenerator<E, void, void> {
  const since = new Date(now - KEY_LIFETIME_MS + 1).toISOString()
  for await (const { events } of readPages(log, { ...range, since, limit: PAGE }))
    for (const { event } of events) if (isOf(event) && event.idempotency_key === key) yield event
}

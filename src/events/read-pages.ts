/** Pages through a log: the only place that knows how a page leads to the next. Follows nothing live; `event-feed.ts` does. */
import type { EventPage, ReadOptions, StoredLog } from './event-store.ts'

/**
 * All pages of a range, in its order; `limit` and `maxBytes` are those of a page, and a page can be empty. Pages and not
 * events: to await each event of a page in memory would cost more than to fold it. Leaving the loop ends the reading. An
 * aborted signal throws its reason before the next page is read; what `read` throws passes through.
 */
export async function* readPages(
  log: Pick<StoredLog, 'read'>,
  options: ReadOptions,
  signal?: AbortSignal,
): AsyncGenerator<EventPage, void, void> {
  const from = options.order === 'desc' ? 'beforeSeq' : 'afterSeq'
  for (let rest = options; ;) {
    signal?.throwIfAborted()
    const page = await log.read(rest)
    yield page
    if (page.scannedTo === undefined) return
    rest = { ...options, [from]: page.scannedTo }
  }
}

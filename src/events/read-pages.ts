/**
 * Pages through a log: the only place that derives the next page from a page. Does not follow live events;
 * `event-feed.ts` does.
 */
import type { LogPage, ReadOptions, StoredLog } from './event-store.ts'

/**
 * Yields all pages of a range, in order; `limit` and `maxBytes` apply to a page, and a page can be empty. It yields
 * pages and not events: awaiting each event of a page in memory would cost more than folding it. Leaving the loop ends
 * the reading. An aborted signal throws its reason before the next page is read; errors of `read` are rethrown.
 */
export async function* readPages(
  log: Pick<StoredLog, 'read'>,
  options: ReadOptions,
  signal?: AbortSignal,
): AsyncGenerator<LogPage, void, void> {
  const from = options.order === 'desc' ? 'beforeSeq' : 'afterSeq'
  for (let rest = options; ;) {
    signal?.throwIfAborted()
    const page = await log.read(rest)
    yield page
    if (page.scannedTo === undefined) return
    rest = { ...options, [from]: page.scannedTo }
  }
}

/** Returns what `find` returns for the first event of a range for which that is not undefined. */
export async function findInLog<T>(
  log: Pick<StoredLog, 'read'>,
  options: ReadOptions,
  find: (event: LogPage['events'][number]) => T | undefined,
): Promise<T | undefined> {
  for await (const { events } of readPages(log, options))
    for (const event of events) {
      const result = find(event)
      if (result !== undefined) return result
    }
  return undefined
}

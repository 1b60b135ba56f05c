/**
 * Follows a log for every kind of reader: SSE, WebSocket, webhooks, SDK and terminal. Reads the backlog from the store,
 * then switches to live events, without gap or duplicate.
 */
import { cursorAhead } from '../contract/problem.ts'
import type { EventLog } from './event-log.ts'
import { FEED_LIMITS, FeedBuffer } from './feed-buffer.ts'
import type { FeedBatch, FeedEnd, FeedLimits } from './feed-buffer.ts'
import type { OwnRecordSource } from './request-record.ts'
import type { PublishedRecord } from './sse-frame.ts'

/** Limits for one read from the store, in events and bytes. */
const PAGE = { limit: 256, maxBytes: 256 * 1024 }
const HEARTBEAT_MS = 15_000

/** A log, or the firehose, which numbers its records itself. */
export type FeedSource = Pick<EventLog, 'head' | 'ended' | 'read' | 'subscribe' | 'messagesSoFar'>

export type FollowOptions = {
  /** The last event the reader knows; 0 for all events. Absent: only new events. */
  readonly afterSeq?: number
  /** Durable events of these types only. */
  readonly types?: ReadonlySet<string>
  /** A further filter for durable and transient records. */
  readonly only?: (record: PublishedRecord) => boolean
  /** Include transient events, independent of `types`. */
  readonly deltas?: boolean
  /** Requests to this reader, or rows, whatever the types it selects. They begin with live events. */
  readonly requests?: OwnRecordSource
  /** Ends the feed as soon as it waits for events; a `return()` alone takes effect only at the next event. */
  readonly signal?: AbortSignal
  readonly limits?: FeedLimits
  /** Limits for one read of the backlog: a slow reader keeps this much in memory. */
  readonly page?: { readonly limit: number; readonly maxBytes: number }
  /** The time without events after which an empty batch with the reached seq is yielded, for a heartbeat. */
  readonly heartbeatMs?: number
}

/**
 * Yields batches of records; the last one has an `end`. A batch has everything that arrived while the reader was busy,
 * so a burst is one write; a single delta reaches a waiting reader within the tick it was published in. Throws
 * `cursor_ahead` immediately, and errors of the store in the loop while the backlog is read. This call fixes the
 * starting point; the first `next()` with nothing left to read subscribes: nothing is lost in between. The reader sets
 * the pace of the backlog; it can be too slow only for live events.
 */
export function follow(log: FeedSource, options: FollowOptions = {}): AsyncGenerator<FeedBatch, void, void> {
  const { afterSeq = log.head } = options
  requireSeq(log, afterSeq)
  return feed(log, afterSeq, options)
}

/** Throws `cursor_ahead` for a seq beyond the log's head. */
export function requireSeq({ head }: Pick<FeedSource, 'head'>, afterSeq = 0): void {
  if (afterSeq > head) throw cursorAhead('after_seq', afterSeq, head)
}

async function* feed(log: FeedSource, afterSeq: number, options: FollowOptions): AsyncGenerator<FeedBatch, void, void> {
  const { types, only, deltas = false, requests, signal, limits = FEED_LIMITS, heartbeatMs = HEARTBEAT_MS } = options
  let reachedSeq = afterSeq
  let sentAt = performance.now()
  const isOver = () => log.ended !== undefined || signal?.aborted === true
  while (reachedSeq < log.head && !isOver()) {
    const batch = await readOn(log, reachedSeq, options)
    reachedSeq = batch.reachedSeq
    // A filter may let nothing through for a long time.
    if (batch.records.length === 0 && performance.now() - sentAt < heartbeatMs) continue
    yield batch
    sentAt = performance.now()
  }

  // Cutover. All events up to the head have been read, and there is no `await` between that check and the subscription:
  // an event stored in between would be in neither. Subscribing first, and buffering until the backlog is read, would
  // also leave no gap; but then a reader far behind would lag, and be cut off, for events it has not reached yet.
  const buffer = new FeedBuffer({ reachedSeq, types, only, limits, heartbeatMs })
  const onAbort = () => buffer.end('aborted')
  const unsubscribe = log.subscribe({
    onEvents: (events) => buffer.addEvents(events),
    ...(deltas && { onTransient: (record) => buffer.addTransient(record) }),
    onNotice: (notice) => buffer.addTransient(notice),
    onClose: (end) => buffer.end(end),
  })
  const leave = requests?.subscribe((record) => buffer.addRequest(record))
  try {
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    for (const record of requests?.due() ?? []) buffer.addDue(record)
    if (deltas) for (const record of log.messagesSoFar()) buffer.addTransient(record)
    for (let end: FeedEnd | undefined; end === undefined;) {
      const batch = await buffer.take()
      yield batch
      end = batch.end
    }
  } finally {
    leave?.()
    unsubscribe()
    signal?.removeEventListener('abort', onAbort)
    buffer.close()
  }
}

async function readOn(log: FeedSource, afterSeq: number, options: FollowOptions): Promise<FeedBatch> {
  const { types, only, page = PAGE } = options
  const { head } = log
  const range = { afterSeq, beforeSeq: head + 1, ...page }
  try {
    const { events, scannedTo = head } = await log.read({ ...range, ...(types && { types }) })
    return { records: only ? events.filter(only) : events, reachedSeq: scannedTo }
  } catch (error) {
    // The log was closed during the read: the loop notices it and ends the feed.
    if (log.ended) return { records: [], reachedSeq: afterSeq }
    throw error
  }
}

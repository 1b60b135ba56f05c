/**
 * How every reader follows a log: SSE, WebSocket, webhooks, SDK and terminal alike. What was before it came is read
 * from the store, then it goes over to what happens now, without gap or duplicate.
 */
import { Problem } from '../contract/problem.ts'
import type { EventLog } from './event-log.ts'
import { FEED_LIMITS, FeedBuffer } from './feed-buffer.ts'
import type { FeedBatch, FeedEnd, FeedLimits } from './feed-buffer.ts'
import type { Published } from './sse-frame.ts'

/** Events read from the store at a time, and bytes looked at. */
const PAGE = { limit: 256, maxBytes: 1024 * 1024 }
const HEARTBEAT_MS = 15_000

/** A log, or the firehose, whose seqs are its own. */
export type FeedSource = Pick<EventLog, 'head' | 'ended' | 'read' | 'subscribe' | 'messagesSoFar'>

export type FollowOptions = {
  /** The last event the reader knows; 0 for all of them. Absent: from now on. */
  readonly afterSeq?: number
  /** Durable events of these types only. */
  readonly types?: ReadonlySet<string>
  /** What else must hold of a record, be it durable or not. */
  readonly only?: (record: Published) => boolean
  /** Transient events too, whatever their types. */
  readonly deltas?: boolean
  /** Ends the feed as soon as it waits for events; a `return()` alone comes through only at the next event. */
  readonly signal?: AbortSignal
  readonly limits?: FeedLimits
  /** What of the backlog is read at a time: so much a reader that takes its time keeps in memory. */
  readonly page?: { readonly limit: number; readonly maxBytes: number }
  /** After so long without anything to tell, an empty batch comes: with the seq reached, time for a sign of life. */
  readonly heartbeatMs?: number
}

/**
 * Batches of records until the one that has an `end`, which is the last. A batch has all that came while the reader was
 * busy, so a burst is one write; a single delta reaches a waiting reader within the tick it was published in.
 * Throws `cursor_ahead` at once; what the store throws while the backlog is read, in the loop. The starting point
 * is fixed by this call, the subscription made by the first `next()` that has nothing left to read: nothing is lost
 * in between. The reader sets the pace of the backlog; only live it can be too slow.
 */
export function follow(log: FeedSource, options: FollowOptions = {}): AsyncGenerator<FeedBatch, void, void> {
  const { afterSeq = log.head } = options
  requireSeq(log, afterSeq)
  return feed(log, afterSeq, options)
}

/** Throws `cursor_ahead` for what the log has not come to. */
export function requireSeq({ head }: Pick<FeedSource, 'head'>, afterSeq = 0): void {
  if (afterSeq > head) throw cursorAhead(afterSeq, head)
}

async function* feed(log: FeedSource, afterSeq: number, options: FollowOptions): AsyncGenerator<FeedBatch, void, void> {
  const { types, only, deltas = false, signal, limits = FEED_LIMITS, heartbeatMs = HEARTBEAT_MS } = options
  let reachedSeq = afterSeq
  let toldAt = performance.now()
  const isOver = () => log.ended !== undefined || signal?.aborted === true
  while (reachedSeq < log.head && !isOver()) {
    const batch = await readOn(log, reachedSeq, options)
    reachedSeq = batch.reachedSeq
    // A filter may let nothing through for long.
    if (batch.records.length === 0 && performance.now() - toldAt < heartbeatMs) continue
    yield batch
    toldAt = performance.now()
  }

  // Cutover. All up to the head has been read, and from there to the subscription there is no `await`: an event stored
  // in between would be in neither. Subscribing first, and buffering until the backlog is read, would be as gapless;
  // but then a reader far behind would lag, and be cut off, for what it hasn't come to yet.
  const buffer = new FeedBuffer({ reachedSeq, types, only, limits, heartbeatMs })
  const onAbort = () => buffer.end('aborted')
  const unsubscribe = log.subscribe({
    onEvents: (events) => buffer.addEvents(events),
    ...(deltas && { onTransient: (record) => buffer.addTransient(record) }),
    onNotice: (notice) => buffer.addTransient(notice),
    onClose: (end) => buffer.end(end),
  })
  try {
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    if (deltas) for (const record of log.messagesSoFar()) buffer.addTransient(record)
    for (let end: FeedEnd | undefined; end === undefined;) {
      const batch = await buffer.take()
      yield batch
      end = batch.end
    }
  } finally {
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
    // The log was closed under us: the loop sees it and says so in its own way.
    if (log.ended) return { records: [], reachedSeq: afterSeq }
    throw error
  }
}

function cursorAhead(afterSeq: number, head: number): Problem {
  return new Problem(
    'cursor_ahead',
    `The log ends at event ${head}, before event ${afterSeq}. Start from an earlier one.`,
    {
      details: { after_seq: afterSeq, head },
    },
  )
}

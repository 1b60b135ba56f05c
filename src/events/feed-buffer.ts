/**
 * The records that one live reader has not taken yet: bounded, so that a slow reader costs a known amount and does not
 * affect others.
 */
import type { StoredEvent } from './event-store.ts'
import type { Notice } from './firehose/firehose-record.ts'
import type { RequestRecord, SummaryRecord } from './request-record.ts'
import type { PublishedRecord } from './sse-frame.ts'
import type { TransientRecord } from './transient-record.ts'

/**
 * `deleted` and `closing`: the log has ended. `lagged`: the reader was too slow; it may reconnect with its last seq.
 * `aborted`: its own signal.
 */
export type FeedEnd = 'deleted' | 'closing' | 'lagged' | 'aborted'

/** `reachedSeq` is the cursor after these records; with a type filter it may be beyond the last of them. */
export type FeedBatch = {
  readonly records: readonly PublishedRecord[]
  readonly reachedSeq: number
  /** Present on the last batch only. */
  readonly end?: FeedEnd
}

export type FeedLimits = {
  /** The bound above which deltas are dropped: a durable event repeats their complete text. */
  readonly softBytes: number
  /** The bounds above which the feed ends as `lagged`. */
  readonly hardBytes: number
  readonly hardRecords: number
}

/** All readers share the records, so a slow one mostly extends how long they are kept. */
export const FEED_LIMITS: FeedLimits = { softBytes: 256 * 1024, hardBytes: 4 * 1024 * 1024, hardRecords: 10_000 }

/** Returns the limits for `OPENHANDS_STREAM_BUFFER_BYTES`. */
export function feedLimits(bufferBytes: number): FeedLimits {
  return { ...FEED_LIMITS, softBytes: bufferBytes / 16, hardBytes: bufferBytes }
}

export type FeedBufferOptions = {
  /** The reader knows all events up to this one. */
  readonly reachedSeq: number
  readonly types: ReadonlySet<string> | undefined
  readonly only: ((record: PublishedRecord) => boolean) | undefined
  readonly limits: FeedLimits
  readonly heartbeatMs: number
}

export class FeedBuffer {
  readonly #types: ReadonlySet<string> | undefined
  readonly #only: FeedBufferOptions['only']
  readonly #limits: FeedLimits
  readonly #heartbeatMs: number
  #reachedSeq: number
  /** The last `reachedSeq` that the reader received. */
  #takenSeq: number
  #records: PublishedRecord[] = []
  #bytes = 0
  #end: FeedEnd | undefined
  /** Set while the reader waits, until it runs again. */
  #wake: (() => void) | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor({ reachedSeq, types, only, limits, heartbeatMs }: FeedBufferOptions) {
    this.#reachedSeq = reachedSeq
    this.#takenSeq = reachedSeq
    this.#types = types
    this.#only = only
    this.#limits = limits
    this.#heartbeatMs = heartbeatMs
  }

  addEvents(events: readonly StoredEvent[]): void {
    if (this.#end) return
    if (this.#isOver(this.#limits.hardBytes) || this.#records.length >= this.#limits.hardRecords) {
      return this.end('lagged')
    }
    for (const event of events) {
      // The backlog contained it: it may have been read further than subscribers had been notified.
      if (event.seq <= this.#reachedSeq) continue
      this.#reachedSeq = event.seq
      if (!this.#types || this.#types.has(event.type)) this.#add(event)
    }
  }

  addTransient(record: TransientRecord | Notice): void {
    if (!this.#end && !this.#isOver(this.#limits.softBytes)) this.#add(record)
  }

  /** Adds a request that waited before the reader came: like the backlog, it does not mean that the reader is slow. */
  addDue(record: RequestRecord | SummaryRecord): void {
    this.#records.push(record)
    this.#wake?.()
  }

  /** Requests and rows are not dropped: a reader that is too slow gets them again when it reconnects. */
  addRequest(record: RequestRecord | SummaryRecord): void {
    if (this.#isOver(this.#limits.hardBytes)) this.end('lagged')
    if (!this.#end) this.#add(record)
  }

  /**
   * A reader that is cut off gets nothing more: it is gone, or reconnects with its cursor. Others get the rest first.
   */
  end(why: FeedEnd): void {
    if (this.#end) return
    this.#end = why
    if (why === 'lagged' || why === 'aborted') {
      this.#records = []
      this.#reachedSeq = this.#takenSeq
    }
    this.#wake?.()
  }

  /** Returns all records as soon as there is one; an empty batch after `heartbeatMs` without any. */
  async take(): Promise<FeedBatch> {
    if (this.#records.length === 0 && !this.#end) await this.#somethingNew()
    const records = this.#records
    this.#records = []
    this.#bytes = 0
    this.#takenSeq = this.#reachedSeq
    return { records, reachedSeq: this.#reachedSeq, ...(this.#end && { end: this.#end }) }
  }

  close(): void {
    clearTimeout(this.#heartbeat)
    this.end('aborted')
  }

  #add(record: PublishedRecord): void {
    if (this.#only?.(record) === false) return
    this.#records.push(record)
    this.#bytes += record.json.length
    this.#wake?.()
  }

  /**
   * Checked before a record is added, not after: one event of 10 MB does not mean that the reader is slow. Neither does
   * a burst while the reader waits: it takes everything as soon as the publisher yields.
   */
  #isOver(bytes: number): boolean {
    return this.#wake === undefined && this.#bytes >= bytes
  }

  async #somethingNew(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    // One timer for the reader's whole life: a new one for each wait would cost more than the wait.
    if (this.#heartbeat) this.#heartbeat.refresh()
    else this.#heartbeat = setTimeout(() => this.#wake?.(), this.#heartbeatMs).unref()
    await promise
    this.#wake = undefined
  }
}

/** What one live reader has not taken yet: bounded, so that a slow reader costs a known amount and nobody else anything. */
import type { StoredEvent } from './event-store.ts'
import type { Notice } from './firehose/firehose-record.ts'
import type { Published } from './sse-frame.ts'
import type { TransientRecord } from './transient-record.ts'

/**
 * `deleted` and `closing`: the log is no more. `lagged`: the reader was too slow; it may come back with the last seq it
 * has. `aborted`: its own signal.
 */
export type FeedEnd = 'deleted' | 'closing' | 'lagged' | 'aborted'

/** `reachedSeq` is the cursor once these records are handled; with a type filter it may be beyond the last of them. */
export type FeedBatch = {
  readonly records: readonly Published[]
  readonly reachedSeq: number
  /** Present on the last batch only. */
  readonly end?: FeedEnd
}

export type FeedLimits = {
  /** Beyond it deltas are dropped: their text comes again, whole, in a durable event. */
  readonly softBytes: number
  /** Beyond either of these the feed ends as `lagged`. */
  readonly hardBytes: number
  readonly hardRecords: number
}

/** The records are shared by all readers, so what a slow one adds is mostly how long they are kept. */
export const FEED_LIMITS: FeedLimits = { softBytes: 256 * 1024, hardBytes: 4 * 1024 * 1024, hardRecords: 10_000 }

/** With what `OPENHANDS_STREAM_BUFFER_BYTES` allows. */
export function feedLimits(bufferBytes: number): FeedLimits {
  return { ...FEED_LIMITS, softBytes: bufferBytes / 16, hardBytes: bufferBytes }
}

export type FeedBufferOptions = {
  /** Events up to this one are known to the reader. */
  readonly reachedSeq: number
  readonly types: ReadonlySet<string> | undefined
  readonly only: ((record: Published) => boolean) | undefined
  readonly limits: FeedLimits
  readonly heartbeatMs: number
}

export class FeedBuffer {
  readonly #types: ReadonlySet<string> | undefined
  readonly #only: (record: Published) => boolean
  readonly #limits: FeedLimits
  readonly #heartbeatMs: number
  #reachedSeq: number
  /** What the reader was last told that it reached. */
  #toldSeq: number
  #records: Published[] = []
  #bytes = 0
  #end: FeedEnd | undefined
  /** Set while the reader waits for us, until it runs again. */
  #wake: (() => void) | undefined
  #heartbeat: NodeJS.Timeout | undefined

  constructor({ reachedSeq, types, only = () => true, limits, heartbeatMs }: FeedBufferOptions) {
    this.#reachedSeq = reachedSeq
    this.#toldSeq = reachedSeq
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
      // Known from the backlog, which may have been read further than subscribers had been told of.
      if (event.seq <= this.#reachedSeq) continue
      this.#reachedSeq = event.seq
      if ((!this.#types || this.#types.has(event.type)) && this.#only(event)) this.#add(event)
    }
  }

  addTransient(record: TransientRecord | Notice): void {
    if (!this.#end && !this.#isOver(this.#limits.softBytes) && this.#only(record)) this.#add(record)
  }

  /** A reader that is cut off gets nothing more: it is gone, or comes back with its cursor. Others get the rest first. */
  end(why: FeedEnd): void {
    if (this.#end) return
    this.#end = why
    if (why === 'lagged' || why === 'aborted') {
      this.#records = []
      this.#reachedSeq = this.#toldSeq
    }
    this.#wake?.()
  }

  /** All there is, as soon as there is any; an empty batch after `heartbeatMs` of silence. */
  async take(): Promise<FeedBatch> {
    if (this.#records.length === 0 && !this.#end) await this.#somethingNew()
    const records = this.#records
    this.#records = []
    this.#bytes = 0
    this.#toldSeq = this.#reachedSeq
    return { records, reachedSeq: this.#reachedSeq, ...(this.#end && { end: this.#end }) }
  }

  close(): void {
    clearTimeout(this.#heartbeat)
    this.end('aborted')
  }

  #add(record: Published): void {
    this.#records.push(record)
    this.#bytes += record.json.length
    this.#wake?.()
  }

  /**
   * Asked before a record is added, not after: one event of 10 MB is no sign of a slow reader. Nor is a burst while the
   * reader waits for us: it takes all of it as soon as the publisher lets go of the thread.
   */
  #isOver(bytes: number): boolean {
    return this.#wake === undefined && this.#bytes >= bytes
  }

  async #somethingNew(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    // One timer for the reader's life, fired or not: a new one for each wait would cost more than the wait.
    if (this.#heartbeat) this.#heartbeat.refresh()
    else this.#heartbeat = setTimeout(() => this.#wake?.(), this.#heartbeatMs).unref()
    await promise
    this.#wake = undefined
  }
}

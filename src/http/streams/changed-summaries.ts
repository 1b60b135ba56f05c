/**
 * The rows of conversations that change, for one reader of the firehose who asks for them. A conversation that changes
 * all the time has one row in each interval: the reader gets its newest one, and no row is made that nobody sends. The first
 * change after a pause is sent at once.
 */
import { setImmediate as yieldToLoop, setTimeout as sleep } from 'node:timers/promises'
import type { ConversationSummary, ConversationSummaryFrame } from '../../contract/conversations/summary.ts'
import type { FirehoseReader } from '../../events/firehose/firehose-reader.ts'
import type { OwnRecordSource, SummaryRecord } from '../../events/request-record.ts'
import { ownRecord } from '../../events/request-record.ts'
import type { PublishedRecord } from '../../events/sse-frame.ts'

/** Rows for these ids; none for a conversation that was deleted. May reject. */
export type ReadSummaries = (ids: readonly string[]) => Promise<readonly ConversationSummary[]>

type ChangedSummariesOptions = {
  readonly read: ReadSummaries
  /** Selects the conversations that the reader gets. */
  readonly only: (record: PublishedRecord) => boolean
  /** Milliseconds on a clock that is never set. */
  readonly now?: () => number
}

/** A conversation has one row in it: short enough that a list looks live, long enough that a busy one costs little. */
const INTERVAL_MS = 100
/** The rows of several conversations are read together. */
const PAUSE_MS = 20
/** Rows that are sent at a time; further ones wait for the next interval. */
const MOST_ROWS = 500

type AddRow = (record: SummaryRecord) => void

export class ChangedSummaries implements OwnRecordSource<SummaryRecord> {
  readonly #reader: Pick<FirehoseReader, 'subscribe'>
  readonly #options: ChangedSummariesOptions
  /** The conversations that have changed since their last row. */
  readonly #changedIds = new Set<string>()
  /** When the conversations of the last interval had their row, in order. */
  readonly #sentAt = new Map<string, number>()
  #isSending = false
  /** Undefined before and after the reader. */
  #add: AddRow | undefined

  constructor(reader: Pick<FirehoseReader, 'subscribe'>, options: ChangedSummariesOptions) {
    this.#reader = reader
    this.#options = options
  }

  /** Rows are about what happens from now on: a client lists the others. */
  due(): readonly SummaryRecord[] {
    return []
  }

  subscribe(add: AddRow): () => void {
    this.#add = add
    const unsubscribe = this.#reader.subscribe({
      onEvents: (events) => {
        for (const record of events) {
          if (this.#options.only(record)) this.#changedIds.add(record.event.conversation_id)
        }
        if (this.#changedIds.size > 0 && !this.#isSending) void this.#send()
      },
    })
    return () => {
      unsubscribe()
      this.#add = undefined
    }
  }

  /** Sends rows, at intervals, until no conversation changes any more. */
  async #send(): Promise<void> {
    this.#isSending = true
    // The events of one append are one change.
    await yieldToLoop()
    while (this.#add && this.#changedIds.size > 0) {
      const ids = this.#takeDue()
      // The storage reports its own failures. The rows are still due then.
      const rows = ids.length === 0 ? [] : await this.#options.read(ids).catch(() => undefined)
      if (!rows) for (const id of ids) this.#changedIds.add(id)
      for (const summary of rows ?? []) this.#add?.(ownRecord(frameOf(summary)))
      await sleep(PAUSE_MS, undefined, { ref: false })
    }
    this.#isSending = false
  }

  /** Removes those that had no row in the last interval from the changed ones. */
  #takeDue(): readonly string[] {
    const now = (this.#options.now ?? performance.now.bind(performance))()
    for (const [id, sentAt] of this.#sentAt) {
      if (now - sentAt < INTERVAL_MS) break
      this.#sentAt.delete(id)
    }
    const ids = [...this.#changedIds].filter((id) => !this.#sentAt.has(id)).slice(0, MOST_ROWS)
    for (const id of ids) {
      this.#changedIds.delete(id)
      this.#sentAt.set(id, now)
    }
    return ids
  }
}

const frameOf = (summary: ConversationSummary): ConversationSummaryFrame => ({
  type: 'ConversationSummary',
  conversation_id: summary.id,
  summary,
})

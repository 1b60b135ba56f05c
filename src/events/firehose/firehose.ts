/**
 * The events of all conversations in one sequence, for readers who follow the server as a whole; `follow` follows it as it
 * does a log. Owns which events are on it and in what order; what they say is read from the logs.
 *
 * Nothing is done for it until somebody asks. Then its index is completed: what came into the logs since it was last in
 * use is added, conversation by conversation. From then on each open log adds what it has stored, and no append waits for
 * that. Conversations at rest are looked at, not opened.
 */
import { Problem } from '../../contract/problem.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { Queue } from '../../lib/queue.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { EventLog, LogSubscriber } from '../event-log.ts'
import type { LogViews, ReadOptions, StoredEvent } from '../event-store.ts'
import { readPages } from '../read-pages.ts'
import { readBacklog } from './firehose-backlog.ts'
import { FirehoseSubscribers } from './firehose-subscribers.ts'
import type { Gap } from './firehose-waiting.ts'
import { FirehoseIndex } from './firehose-index.ts'
import type { Notice } from './firehose-record.ts'
import { decodeCursor, encodeCursor } from './firehose-cursor.ts'
import { deletedNotice, firehoseEvent } from './firehose-record.ts'
import type { TransientRecord } from '../transient-record.ts'

export type FirehoseDeps = {
  /** Of the index; made when it isn't there. */
  readonly path: string
  readonly store: LogViews
  /**
   * Of the conversations there are, open or not, the seq of the last event; undefined where the log has to be looked at. It
   * is asked for each as it comes up, and has heard of all that was stored before the firehose does.
   */
  readonly heads: () => Iterable<readonly [conversationId: string, head: number | undefined]>
  /** Told what keeps a conversation's events, or all, from being told. */
  readonly onFault: (error: unknown, conversationId?: string) => void
}

/** For one reader, who gives it to `follow`, and gives it back. */
export type FirehoseReader = Disposable &
  Pick<EventLog, 'head' | 'ended' | 'read' | 'subscribe' | 'messagesSoFar'> & {
    /** Throws `invalid_cursor` or `cursor_ahead`. */
    readonly positionOf: (cursor: string) => number
    readonly cursorAt: (position: number) => string
  }

/** Logs looked at at the same time while the index is completed. */
const COMPLETE_CONCURRENCY = 32
/** Records added at a time then: a log that is new to the index may hold a million events. */
const COMPLETE_STEP = 10_000
/** Events of a gap read at a time. */
const GAP_PAGE = 256

export class Firehose {
  readonly #deps: FirehoseDeps
  readonly #logs = new Set<EventLog>()
  readonly #subscribers = new FirehoseSubscribers()
  /** One after another: opening, completing and closing the index. */
  readonly #turns = new Queue({ limit: 1 })
  #index: FirehoseIndex | undefined
  #isComplete = false
  #readers = 0
  /** Records up to this one may be told. */
  #head = 0
  #flushing: Promise<void> | undefined
  #ended: 'closing' | undefined

  constructor(deps: FirehoseDeps) {
    this.#deps = deps
  }

  /** For tests, and to see whether anybody still looks. */
  get subscriberCount(): number {
    return this.#subscribers.count
  }

  /** To be called with each log as it is opened, before anything is appended to it. */
  attach(log: EventLog): void {
    const { conversationId } = log
    this.#logs.add(log)
    if (this.#index && this.#isComplete) this.#agreeOn(this.#index, conversationId, log.head)
    log.subscribe({
      onEvents: (events) => this.#take(conversationId, events),
      onTransient: (record) => this.#pass(record),
      onClose: () => this.#logs.delete(log),
    })
  }

  /** To be called when a conversation is gone for good. */
  announceDeleted(owner: Notice['owner']): void {
    this.#pass(deletedNotice(owner))
  }

  /** Resolves when all that was stored before the call can be read. Throws a `Problem` when it cannot be told. */
  async open(): Promise<FirehoseReader> {
    this.#readers += 1
    let isOpen = true
    const release = () => {
      if (isOpen) this.#readers -= 1
      isOpen = false
    }
    try {
      return this.#readerOf(await this.#turns.run(() => this.#ready()), release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** When the logs are closed: tells the readers, and lets go of the file. */
  async close(): Promise<void> {
    this.#ended = 'closing'
    await this.#turns.run(async () => {
      await this.#flushing
      this.#subscribers.endAll('closing')
      await this.#letGo()
    })
  }

  #readerOf(index: FirehoseIndex, release: () => void): FirehoseReader {
    const head = () => this.#head
    const ended = () => this.#ended
    const { store, onFault } = this.#deps
    return {
      get head() {
        return head()
      },
      get ended() {
        return ended()
      },
      read: (options) => readBacklog({ index, store, onFault, head: this.#head }, options),
      subscribe: (subscriber) => this.#subscribe(subscriber),
      messagesSoFar: () => Array.from(this.#logs).flatMap((log) => log.messagesSoFar()),
      positionOf: (cursor) => this.#positionOf(cursor, index.epoch),
      cursorAt: (position) => encodeCursor(index.epoch, position),
      [Symbol.dispose]: release,
    }
  }

  #positionOf(cursor: string, epoch: string): number {
    const position = decodeCursor(cursor, epoch)
    if (position <= this.#head) return position
    throw new Problem('cursor_ahead', 'The firehose has not come to this cursor yet. Start from an earlier one.')
  }

  #subscribe(subscriber: LogSubscriber): () => void {
    if (!this.#ended) return this.#subscribers.add(subscriber)
    subscriber.onClose?.(this.#ended)
    return () => {}
  }

  /** The index, with all in it that is stored now, and durable. */
  async #ready(): Promise<FirehoseIndex> {
    if (this.#ended) throw new Problem('unavailable', 'The server is stopping; try again when it is running.')
    const index = (this.#index ??= await FirehoseIndex.open(this.#deps.path))
    if (!this.#isComplete) await this.#complete(index)
    await this.#flush()
    if (this.#index === index) return index
    throw new Problem(
      'storage_failed',
      'The index of the firehose could not be written; see to the disk and try again.',
    )
  }

  async #complete(index: FirehoseIndex): Promise<void> {
    this.#head = index.count
    const isOver = () => this.#ended !== undefined || this.#index !== index
    const unknown: string[] = []
    const slices = createSlices()
    for (const [id, head] of this.#deps.heads()) {
      if (head === undefined) unknown.push(id)
      const busy = (head !== undefined && this.#addUpTo(index, id, head)) || slices.rest()
      if (busy) await busy
      if (isOver()) return
    }
    await mapBounded(unknown, COMPLETE_CONCURRENCY, async (id) => {
      if (isOver()) return
      try {
        await this.#lookInto(index, id)
      } catch (error) {
        // One damaged log is no reason to tell nothing of the others.
        if (!isGone(error)) this.#deps.onFault(error, id)
      }
    })
    this.#isComplete = this.#index === index
  }

  async #lookInto(index: FirehoseIndex, id: string): Promise<void> {
    const known = index.headOf(id)
    await using view = await this.#deps.store.view(id)
    // Its writer may be ahead of what we saw, and have told of more by now.
    await this.#addUpTo(index, id, view.head < known ? view.head : Math.max(view.head, index.headOf(id)))
  }

  /** At once where there is little to add, as of nearly all. */
  #addUpTo(index: FirehoseIndex, id: string, head: number): Promise<void> | undefined {
    const known = index.headOf(id)
    if (head - known > COMPLETE_STEP) return this.#addInSteps(index, id, head)
    this.#agreeOn(index, id, head)
    return index.waitingCount > COMPLETE_STEP ? this.#flush() : undefined
  }

  async #addInSteps(index: FirehoseIndex, id: string, head: number): Promise<void> {
    for (let from = index.headOf(id); from < head; from = Math.max(from + COMPLETE_STEP, index.headOf(id))) {
      this.#agreeOn(index, id, Math.max(Math.min(from + COMPLETE_STEP, head), index.headOf(id)))
      await this.#flush()
    }
  }

  /** That the log has come this far, told or not: whoever comes to what was not told reads it from the log. */
  #agreeOn(index: FirehoseIndex, conversationId: string, head: number): void {
    const known = index.headOf(conversationId)
    // Restored from a backup, say. What it stores next is told, under seqs that were told before.
    if (head < known) return index.shorten(conversationId, head)
    if (head === known) return
    const to = index.add(conversationId, head)
    if (this.#subscribers.count > 0) this.#subscribers.wait({ after: to - (head - known), to })
    void this.#flush()
  }

  #take(conversationId: string, events: readonly StoredEvent[]): void {
    const index = this.#index
    if (!index) return
    // Some of it may have been found in the log already, while the index was completed.
    const fresh = events.filter(({ seq }) => seq > index.headOf(conversationId))
    const [first] = fresh
    if (!first) return
    this.#agreeOn(index, conversationId, first.seq - 1)
    for (const stored of fresh) {
      this.#subscribers.wait(firehoseEvent(index.add(conversationId, stored.seq), index.epoch, stored))
    }
    void this.#flush()
  }

  #pass(record: TransientRecord | Notice): void {
    if (this.#subscribers.count === 0) return
    if (this.#flushing) this.#subscribers.wait(record)
    else this.#subscribers.tellNow(record)
  }

  /** Never rejects. */
  #flush(): Promise<void> {
    this.#flushing ??= this.#flushAll()
    return this.#flushing
  }

  /** Stored before shown: a reader comes back with the cursor it was given. Without readers nothing is synced. */
  async #flushAll(): Promise<void> {
    try {
      do {
        const count = this.#subscribers.waitingCount
        await this.#index?.write()
        if (this.#readers > 0) await this.#index?.sync()
        this.#head = this.#index?.count ?? 0
        await this.#subscribers.show(count, (gap) => this.#pagesOf(gap))
        await this.#index?.saveHeads().catch(this.#deps.onFault)
      } while (this.#subscribers.waitingCount > 0 || (this.#index?.waitingCount ?? 0) > 0)
    } catch (error) {
      this.#giveUp(error)
    }
    this.#flushing = undefined
  }

  /** Ends early when nobody is left to show them to. */
  async *#pagesOf({ after, to }: Gap): AsyncGenerator<readonly StoredEvent[]> {
    const index = this.#index
    if (!index || this.#subscribers.count === 0) return
    const backlog = { ...this.#deps, index, head: this.#head }
    const log = { read: (options: ReadOptions) => readBacklog(backlog, options) }
    for await (const { events } of readPages(log, { afterSeq: after, beforeSeq: to + 1, limit: GAP_PAGE })) {
      if (events.length > 0) yield events
      if (this.#subscribers.count === 0) return
    }
  }

  /** The next reader opens the index anew, and finds in the logs what it lacks. */
  #giveUp(error: unknown): void {
    this.#deps.onFault(error)
    this.#subscribers.dropWaiting()
    this.#subscribers.endAll('lagged')
    void this.#letGo()
  }

  async #letGo(): Promise<void> {
    const index = this.#index
    this.#index = undefined
    this.#isComplete = false
    try {
      await index?.close()
    } catch (error) {
      this.#deps.onFault(error)
    }
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof Problem && (error.code === 'conversation_not_found' || error.code === 'conversation_deleted')

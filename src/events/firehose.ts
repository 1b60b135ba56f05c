/**
 * The events of all conversations in one sequence, for readers of the whole server; `follow` reads it like a log. Owns
 * which events are on it and in what order; their content is read from the logs.
 *
 * Nothing happens until the first reader. Then its index is completed: events stored since its last use are added,
 * conversation by conversation. From then on each open log adds the events it has stored, and no append waits for that.
 * Conversations that are not open are read, not opened.
 */
import { Problem } from '../contract/problem.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import { Queue } from '../lib/queue.ts'
import { createSlices } from '../lib/time-slices.ts'
import type { EventLog, LogSubscriber } from './event-log.ts'
import type { LogViews, ReadOptions, StoredEvent } from './event-store.ts'
import { readPages } from './read-pages.ts'
import { readBacklog } from './firehose/firehose-backlog.ts'
import { FirehoseSubscribers } from './firehose/firehose-subscribers.ts'
import { positionWithin } from './firehose/firehose-reader.ts'
import type { FirehoseReader } from './firehose/firehose-reader.ts'
import type { Gap } from './firehose/firehose-waiting.ts'
import { FirehoseIndex } from './firehose/firehose-index.ts'
import { encodeCursor, encodeFreshCursor } from './firehose/firehose-cursor.ts'
import { deletedNotice, firehoseEvent, type Notice } from './firehose/firehose-record.ts'
import type { TransientRecord } from './transient-record.ts'

export type FirehoseDeps = {
  /** Path of the index; created if it does not exist. */
  readonly path: string
  readonly store: LogViews
  /**
   * Yields the last seq of each conversation, open or not; undefined if the log must be read for it. Called for each
   * conversation in turn, and up to date with all events that the firehose has received.
   */
  readonly heads: () => Iterable<readonly [conversationId: string, head: number | undefined]>
  /** Called with errors that keep a conversation's events, or all, from being published. */
  readonly onFault: (error: unknown, conversationId?: string) => void
}

/** Logs read concurrently while the index is completed. */
const COMPLETE_CONCURRENCY = 32
/** Records added at a time then: a log that is new to the index may contain a million events. */
const COMPLETE_STEP = 10_000
/** Events of a gap read at a time. */
const GAP_PAGE = 256

export class Firehose {
  readonly #deps: FirehoseDeps
  readonly #logs = new Set<EventLog>()
  /** Set with the first reader. */
  #isListening = false
  readonly #subscribers = new FirehoseSubscribers()
  /** One at a time: opening, completing and closing the index. */
  readonly #turns = new Queue({ limit: 1 })
  #index: FirehoseIndex | undefined
  #isComplete = false
  #readers = 0
  /** Records up to this one may be published. */
  #head = 0
  #flushing: Promise<void> | undefined
  #ended: 'closing' | undefined

  constructor(deps: FirehoseDeps) {
    this.#deps = deps
  }

  /** For tests, and to see whether there are readers left. */
  get subscriberCount(): number {
    return this.#subscribers.count
  }

  /** For tests: the number of conversations about which it remembers something. */
  get conversationCount(): number {
    return this.#index?.conversationCount ?? 0
  }

  /** Call it with each log that is opened, before anything is appended to it. */
  attach(log: EventLog): void {
    this.#logs.add(log)
    if (this.#index && this.#isComplete) this.#agreeOn(this.#index, log.conversationId, log.head)
    log.subscribe({ onClose: () => this.#logs.delete(log) })
    if (this.#isListening) this.#listenTo(log)
  }

  /** Call it when a conversation is permanently deleted. */
  announceDeleted(owner: Notice['owner']): void {
    this.#pass(deletedNotice(owner))
    // Until the index is complete, events that were read before the deletion may still be added.
    if (this.#isComplete) this.#index?.forget(owner.id)
  }

  /** Resolves when all events stored before the call can be read. Throws a `Problem` if that is not possible. */
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

  /** Call it after the logs are closed: notifies the readers and closes the file. */
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
      positionOf: (cursor) => positionWithin(cursor, index.epoch, this.#head),
      cursorAt: (position) => encodeCursor(index.epoch, position),
      freshCursorAt: (position) => encodeFreshCursor(index.epoch, position),
      [Symbol.dispose]: release,
    }
  }

  #subscribe(subscriber: LogSubscriber): () => void {
    if (!this.#ended) return this.#subscribers.add(subscriber)
    subscriber.onClose?.(this.#ended)
    return () => {}
  }

  /** Returns the index, durable and with all events stored so far. */
  async #ready(): Promise<FirehoseIndex> {
    if (this.#ended) throw new Problem('unavailable', 'The server is stopping; try again when it is running.')
    // Before the index is opened: what it lacks by then is read from the logs.
    if (!this.#isListening) for (const log of this.#logs) this.#listenTo(log)
    this.#isListening = true
    const index = (this.#index ??= await FirehoseIndex.open(this.#deps.path))
    if (!this.#isComplete) await this.#complete(index)
    await this.#flush()
    if (this.#index === index) return index
    throw new Problem('storage_failed', 'The index of the firehose could not be written; check the disk and try again.')
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
        // One damaged log must not stop the events of the others.
        if (!isGone(error)) this.#deps.onFault(error, id)
      }
    })
    if (isOver()) return
    // A log that was copied meanwhile may be missing above, and its events were not reported.
    for (const { conversationId: id, head } of this.#logs) if (head > index.headOf(id)) this.#agreeOn(index, id, head)
    index.keepOnly(this.#deps.heads(), this.#logs)
    this.#isComplete = true
  }

  async #lookInto(index: FirehoseIndex, id: string): Promise<void> {
    const known = index.headOf(id)
    await using view = await this.#deps.store.view(id)
    // Its writer may be ahead of this view, and may have reported later events already.
    await this.#addUpTo(index, id, view.head < known ? view.head : Math.max(view.head, index.headOf(id)))
  }

  /** Synchronous if there is little to add, as for nearly all conversations. */
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

  /** Records the log's current head, whether published or not: the missing events are read from the log. */
  #agreeOn(index: FirehoseIndex, conversationId: string, head: number): void {
    const known = index.headOf(conversationId)
    // The log was restored from a backup, for example. Its next events are published, with seqs that were used before.
    if (head < known) return index.shorten(conversationId, head)
    if (head === known) return
    index.add(conversationId, head)
    void this.#flush()
  }

  #listenTo(log: EventLog): void {
    log.subscribe({ onEvents: (events) => this.#take(log, events), onTransient: (record) => this.#pass(record) })
  }

  #take({ conversationId }: EventLog, events: readonly StoredEvent[]): void {
    const index = this.#index
    if (!index) return
    // Some of them may have been found in the log already, while the index was completed.
    const fresh = events.filter(({ seq }) => seq > index.headOf(conversationId))
    const [first] = fresh
    if (!first) return
    this.#agreeOn(index, conversationId, first.seq - 1)
    for (const stored of fresh) {
      const position = index.add(conversationId, stored.seq)
      this.#subscribers.wait({ one: firehoseEvent(position, index.epoch, stored), position })
    }
    void this.#flush()
  }

  #pass(record: TransientRecord | Notice): void {
    if (this.#subscribers.count === 0) return
    if (this.#flushing) this.#subscribers.wait({ one: record, position: this.#index?.added ?? 0 })
    else this.#subscribers.tellNow(record)
  }

  /** Never rejects. */
  #flush(): Promise<void> {
    this.#flushing ??= this.#flushAll()
    return this.#flushing
  }

  /** Stores before publishing: a reader reconnects with the cursor it was given. Without readers nothing is synced. */
  async #flushAll(): Promise<void> {
    try {
      do {
        const count = this.#subscribers.waitingCount
        await this.#index?.write()
        if (this.#readers > 0) await this.#index?.sync()
        const positions = { after: this.#head, to: this.#index?.count ?? 0 }
        // Readers that subscribe from here on have read up to this position.
        this.#head = positions.to
        await this.#subscribers.show(count, positions, (gap) => this.#pagesOf(gap))
        await this.#index?.saveHeads().catch(this.#deps.onFault)
      } while (this.#subscribers.waitingCount > 0 || (this.#index?.waitingCount ?? 0) > 0)
    } catch (error) {
      this.#giveUp(error)
    }
    this.#flushing = undefined
  }

  /** Ends early if no readers are left. */
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

  /** The next reader reopens the index, and adds what it lacks from the logs. */
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

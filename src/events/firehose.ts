/**
 * The events of all conversations in one sequence, for readers of the whole server; `follow` reads it like a log. Owns
 * which events are on it and in what order; their content is read from the logs.
 *
 * Nothing happens until the first reader. Then its order is completed: events stored since its last use are added,
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
import type { FirehoseOrder, FirehoseOrderStore, LogHead } from './firehose/firehose-order.ts'
import { encodeCursor, encodeFreshCursor } from './firehose/firehose-cursor.ts'
import { deletedNotice, type Notice } from './firehose/firehose-record.ts'
import type { TransientRecord } from './transient-record.ts'

export type FirehoseDeps = {
  readonly orders: FirehoseOrderStore
  readonly store: LogViews
  /**
   * Yields the last seq of each conversation, open or not; undefined if the log must be read for it. Called for each
   * conversation in turn, and up to date with all events that the firehose has received.
   */
  readonly heads: () => Iterable<readonly [conversationId: string, head: number | undefined]>
  /** Called with errors that keep a conversation's events, or all, from being published. */
  readonly onFault: (error: unknown, conversationId?: string) => void
}

/** Logs read concurrently while the order is completed. */
const COMPLETE_CONCURRENCY = 32
/** Conversations added at a time then. */
const COMPLETE_STEP = 10_000
/** Events of a gap read at a time. */
const GAP_PAGE = 256

export class Firehose {
  readonly #deps: FirehoseDeps
  readonly #logs = new Set<EventLog>()
  /** Set with the first reader. */
  #isListening = false
  readonly #subscribers = new FirehoseSubscribers()
  /** Opening, completing and closing the order happen one at a time. */
  readonly #queue = new Queue({ limit: 1 })
  #order: FirehoseOrder | undefined
  #isComplete = false
  /** What the order does not have yet. */
  #pending: LogHead[] = []
  /** The last seqs that logs have reported while the order is being completed. */
  readonly #reported = new Map<string, number>()
  /** Other instances may have appended. */
  #hasNews = false
  #readers = 0
  /** Positions up to this one may be published. */
  #head = 0
  #flushing: Promise<void> | undefined
  #ended: 'closing' | undefined

  constructor(deps: FirehoseDeps) {
    this.#deps = deps
  }

  /** Shows tests, and others, whether there are readers left. */
  get subscriberCount(): number {
    return this.#subscribers.count
  }

  /** Call it with each log that is opened, before anything is appended to it. */
  attach(log: EventLog): void {
    this.#logs.add(log)
    if (this.#isComplete) this.#addAll(log.conversationId, log.head)
    log.subscribe({ onClose: () => this.#logs.delete(log) })
    if (this.#isListening) this.#listenTo(log)
  }

  /** Call it when a conversation is permanently deleted. */
  announceDeleted(owner: Notice['owner']): void {
    this.#pass(deletedNotice(owner))
    this.#addAll(owner.id, 0)
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
      return this.#readerOf(await this.#queue.run(() => this.#ready()), release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Call it after the logs are closed: notifies the readers and closes the order. */
  async close(): Promise<void> {
    this.#ended = 'closing'
    await this.#queue.run(async () => {
      await this.#flushing
      this.#subscribers.endAll('closing')
      await this.#letGo()
    })
  }

  #readerOf(order: FirehoseOrder, release: () => void): FirehoseReader {
    const head = () => this.#head
    const endReason = () => this.#ended
    const { store, onFault } = this.#deps
    return {
      get head() {
        return head()
      },
      get ended() {
        return endReason()
      },
      read: (options) => readBacklog({ order, store, onFault, head: this.#head }, options),
      subscribe: (subscriber) => this.#subscribe(subscriber),
      messagesSoFar: () => Array.from(this.#logs).flatMap((log) => log.messagesSoFar()),
      positionOf: (cursor) => positionWithin(cursor, order, this.#head),
      cursorAt: (position) => encodeCursor(order.epoch, position),
      freshCursorAt: (position) => encodeFreshCursor(order.epoch, position),
      [Symbol.dispose]: release,
    }
  }

  #subscribe(subscriber: LogSubscriber): () => void {
    if (!this.#ended) return this.#subscribers.add(subscriber)
    subscriber.onClose?.(this.#ended)
    return () => {}
  }

  /** Returns the order, durable and with all events stored so far. */
  async #ready(): Promise<FirehoseOrder> {
    if (this.#ended) throw new Problem('unavailable', 'The server is stopping; try again when it is running.')
    // This precedes the opening of the order: what it lacks by then is read from the logs.
    if (!this.#isListening) for (const log of this.#logs) this.#listenTo(log)
    this.#isListening = true
    const order = (this.#order ??= await this.#deps.orders.open(this.#noteNews))
    if (!this.#isComplete) await this.#complete(order)
    await this.#flush()
    if (this.#order === order) return order
    throw new Problem('storage_failed', 'The order of the firehose could not be stored; check the disk and try again.')
  }

  readonly #noteNews = (): void => {
    this.#hasNews = true
    void this.#flush()
  }

  async #complete(order: FirehoseOrder): Promise<void> {
    this.#head = order.last
    if (order.logs) return void (this.#isComplete = true)
    this.#reported.clear()
    const isOver = () => this.#ended !== undefined || this.#order !== order
    const unknownIds: string[] = []
    const slices = createSlices()
    for (const [id, head] of this.#deps.heads()) {
      if (head === undefined) unknownIds.push(id)
      else this.#pending.push({ conversationId: id, head, isExact: true })
      const busy = this.#pending.length >= COMPLETE_STEP ? this.#flush() : slices.rest()
      if (busy) await busy
      if (isOver()) return
    }
    await mapBounded(unknownIds, COMPLETE_CONCURRENCY, async (id) => {
      if (isOver()) return
      try {
        await using view = await this.#deps.store.view(id)
        // Its writer may be ahead of this view, and may have reported later events already.
        this.#addAll(id, Math.max(view.head, this.#reported.get(id) ?? 0))
      } catch (error) {
        // One damaged log must not stop the events of the others.
        if (!isGone(error)) this.#deps.onFault(error, id)
      }
    })
    if (isOver()) return
    // A log that was copied meanwhile may be missing above, and its events were not reported.
    for (const { conversationId, head } of this.#logs) this.#pending.push({ conversationId, head })
    await this.#flush()
    if (isOver()) return
    await order.keepOnly(idsOf(this.#deps.heads(), this.#logs))
    this.#isComplete = true
    this.#reported.clear()
  }

  /** The log has so many events, whether published or not: the missing ones are read from the log. */
  #addAll(conversationId: string, head: number): void {
    if (!this.#order) return
    // The log may have been restored from a backup, for example. Its next events are published, with seqs that were used before.
    this.#pending.push({ conversationId, head, isExact: true })
    if (this.#subscribers.count > 0) this.#subscribers.wait({ kind: 'head', of: { conversationId, seq: head } })
    void this.#flush()
  }

  #listenTo(log: EventLog): void {
    log.subscribe({ onEvents: (events) => this.#take(log, events), onTransient: (record) => this.#pass(record) })
  }

  #take({ conversationId }: EventLog, events: readonly StoredEvent[]): void {
    const last = events.at(-1)
    if (!this.#order || !last) return
    this.#pending.push({ conversationId, head: last.seq })
    if (!this.#isComplete) this.#reported.set(conversationId, last.seq)
    if (this.#subscribers.count > 0)
      for (const storedEvent of events)
        this.#subscribers.wait({ kind: 'event', stored: storedEvent, of: { conversationId, seq: storedEvent.seq } })
    void this.#flush()
  }

  #pass(record: TransientRecord | Notice): void {
    if (this.#subscribers.count === 0) return
    if (this.#flushing) this.#subscribers.wait({ kind: 'passing', record })
    else this.#subscribers.tellNow(record)
  }

  /** Never rejects. */
  #flush(): Promise<void> {
    if (this.#order) this.#flushing ??= this.#flushAll()
    return this.#flushing ?? Promise.resolve()
  }

  /** Stores before publishing: a reader reconnects with the cursor it was given. Without readers nothing is synced. */
  async #flushAll(): Promise<void> {
    try {
      for (let order = this.#order; order; order = this.#isIdle() ? undefined : this.#order) {
        const heads = this.#pending
        const count = this.#subscribers.waitingCount
        this.#pending = []
        this.#hasNews = false
        await order.add(heads)
        if (this.#readers > 0) await order.sync()
        const positions = { after: this.#head, to: order.last }
        // Readers that subscribe from here on have read up to this position.
        this.#head = positions.to
        await this.#subscribers.show(count, { order, positions, pagesOf: (gap) => this.#pagesOf(gap) })
      }
    } catch (error) {
      this.#giveUp(error)
    }
    this.#flushing = undefined
  }

  #isIdle(): boolean {
    return this.#subscribers.waitingCount === 0 && this.#pending.length === 0 && !this.#hasNews
  }

  /** Ends early if no readers are left. */
  async *#pagesOf({ after, to }: Gap): AsyncGenerator<readonly StoredEvent[]> {
    const order = this.#order
    if (!order || this.#subscribers.count === 0) return
    const backlog = { ...this.#deps, order, head: this.#head }
    const log = { read: (options: ReadOptions) => readBacklog(backlog, options) }
    for await (const { events } of readPages(log, { afterSeq: after, beforeSeq: to + 1, limit: GAP_PAGE })) {
      if (events.length > 0) yield events
      if (this.#subscribers.count === 0) return
    }
  }

  /** The next reader opens the order again, and adds what it lacks from the logs. */
  #giveUp(error: unknown): void {
    this.#deps.onFault(error)
    this.#subscribers.dropWaiting()
    this.#subscribers.endAll('lagged')
    void this.#letGo()
  }

  async #letGo(): Promise<void> {
    const order = this.#order
    this.#order = undefined
    this.#isComplete = false
    this.#pending = []
    try {
      await order?.[Symbol.asyncDispose]()
    } catch (error) {
      this.#deps.onFault(error)
    }
  }
}

const isGone = (error: unknown): boolean =>
  error instanceof Problem && (error.code === 'conversation_not_found' || error.code === 'conversation_deleted')

function* idsOf(
  heads: Iterable<readonly [id: string, head: number | undefined]>,
  logs: Iterable<{ readonly conversationId: string }>,
): Generator<string> {
  for (const [id] of heads) yield id
  for (const { conversationId } of logs) yield conversationId
}

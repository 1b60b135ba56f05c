/**
 * The log of one conversation as its writer and all its readers share it: what is appended is stored, then shown.
 * Knows who listens; how far each has read, and what becomes of the slow, is for the feed.
 */
import type { EventDraft } from '../contract/events/event.ts'
import type { TransientDraft } from '../contract/events/transient-event.ts'
import { Problem } from '../contract/problem.ts'
import type { EventFilter, EventPage, ReadOptions, StoredEvent, StoredLog } from './event-store.ts'
import type { Notice } from './firehose/firehose-record.ts'
import { LiveMessages } from './live-messages.ts'
import type { TransientRecord } from './transient-record.ts'
import { createTransientRecord } from './transient-record.ts'

/** Why a log is no more: its conversation was deleted, or the server lets go of it. */
export type LogEnd = 'deleted' | 'closing'

/** Called synchronously, so it does little. What it throws goes to `onListenerError` and hurts nobody else. */
export type LogSubscriber = {
  /** Events appended together, durable, in the order of their seqs and without gaps from call to call. */
  readonly onEvents: (events: readonly StoredEvent[]) => void
  readonly onTransient?: (record: TransientRecord) => void
  /** What the reader is told, and is no event. Only the firehose has it. */
  readonly onNotice?: (notice: Notice) => void
  /** Once, as the last call. `lagged`, of the firehose only: what comes next can be read, and is not shown. */
  readonly onClose?: (end: LogEnd | 'lagged') => void
}

export type EventLogDeps = {
  /** Owned from here on: closed with this log. */
  readonly log: StoredLog
  readonly onListenerError: (error: unknown) => void
  /** Told how long it took until events were durable, milliseconds. */
  readonly onAppended?: (ms: number) => void
  /**
   * Around each append, for what has to be durable before it. Calls `append` once: at once, or those that wait in the
   * order they came. What it throws before, the append throws.
   */
  readonly guard?: <T>(append: () => Promise<T>) => Promise<T>
  /** Unix time in milliseconds. */
  readonly now?: () => number
}

export class EventLog {
  readonly conversationId: string
  /** Resolves when the store has failed, and the log has to be opened again. Not when another writer took it over. */
  readonly whenStoreFailed: Promise<void>
  readonly #deps: EventLogDeps
  readonly #log: StoredLog
  readonly #subscribers = new Set<LogSubscriber>()
  readonly #messages = new LiveMessages()
  readonly #storeFailed = Promise.withResolvers<void>()
  #failed = false
  #ended: LogEnd | undefined
  #closing: Promise<void> | undefined
  #lastShown: Promise<unknown> = Promise.resolve()

  constructor(deps: EventLogDeps) {
    this.#deps = deps
    this.#log = deps.log
    this.conversationId = deps.log.conversationId
    this.whenStoreFailed = this.#storeFailed.promise
  }

  /** Seq of the last durable event; 0 when there is none. Subscribers hear of it at the latest in the next microtasks. */
  get head(): number {
    return this.#log.head
  }

  /** Set once closing began: from then on there is nothing to wait for and nothing to read. */
  get ended(): LogEnd | undefined {
    return this.#ended
  }

  /** Nothing can be appended any more: the store can't tell what is durable, or another writer took the log over. */
  get failed(): boolean {
    return this.#failed
  }

  /** For tests and to see whether anybody still looks. */
  get subscriberCount(): number {
    return this.#subscribers.size
  }

  /**
   * Stores the events, all or none, then shows them to every subscriber, then resolves: whoever awaits it knows that
   * all have heard. Concurrent appends are stored and shown in the order of the calls.
   * Throws a `Problem`: `storage_full` and `unavailable` (nothing was stored, try again), `storage_failed` (see `failed`).
   */
  append(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]> {
    const stored = this.#store(drafts)
    // In the order of the calls, however the promises of the store are chained. No `Queue`: the storing must not wait.
    const shown = this.#lastShown.then(async () => {
      const events = await stored
      this.#show(events)
      return events
    })
    this.#lastShown = shown.catch(() => undefined)
    // Its fate is told through `shown`; alone, it would be an unhandled rejection while another is awaited before it.
    stored.catch(() => undefined)
    return shown
  }

  /** Shown to those who are there, at once: before any event whose `append` has not resolved. Never stored. */
  publish(draft: TransientDraft): void {
    if (this.#ended) return
    const record = createTransientRecord(draft, this.conversationId, this.#now())
    if (record.event.type === 'AssistantDelta') this.#messages.add(record.event)
    if (record.event.type === 'AssistantAborted') this.#messages.forget(record.event.message_id)
    this.#tellAll((subscriber) => subscriber.onTransient?.(record))
  }

  /** From now on. Returns how to stop, which may be called at any time and more than once. */
  subscribe(subscriber: LogSubscriber): () => void {
    // A copy, so that each subscription is its own, also of one subscriber that comes twice.
    const own = { ...subscriber }
    if (this.#ended) own.onClose?.(this.#ended)
    else this.#subscribers.add(own)
    return () => this.#subscribers.delete(own)
  }

  /** The messages being streamed, up to now, each part as one delta: what a subscriber of this very tick has missed. */
  messagesSoFar(): readonly TransientRecord[] {
    return this.#messages.soFar(this.conversationId, this.#now())
  }

  read(options: ReadOptions): Promise<EventPage> {
    return this.#log.read(options)
  }

  find(eventId: string): Promise<StoredEvent | undefined> {
    return this.#log.find(eventId)
  }

  count(filter?: EventFilter): Promise<number> {
    return this.#log.count(filter)
  }

  /** Waits for what was appended, then tells the subscribers why it is over. Idempotent. */
  close(end: LogEnd): Promise<void> {
    return (this.#closing ??= this.#close(end))
  }

  #now(): number {
    return (this.#deps.now ?? Date.now)()
  }

  // Not async: a quiet log starts writing within this very call.
  #store(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]> {
    const { guard } = this.#deps
    return guard ? guard(() => this.#write(drafts)) : this.#write(drafts)
  }

  async #write(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]> {
    const startedAt = performance.now()
    try {
      const outcome = await this.#log.append(drafts, { epoch: this.#log.epoch })
      if (outcome.kind === 'appended') {
        this.#deps.onAppended?.(performance.now() - startedAt)
        return outcome.events
      }
    } catch (error) {
      if (error instanceof Problem && error.code === 'storage_failed') {
        this.#failed = true
        this.#storeFailed.resolve()
      }
      throw error
    }
    this.#failed = true
    throw new Problem('storage_failed', 'Another writer has taken over the log of this conversation.')
  }

  #show(events: readonly StoredEvent[]): void {
    if (events.length === 0) return
    // Before the subscribers are told: one who joins from here on gets the durable message, not its beginnings too.
    if (!this.#messages.isEmpty) this.#forgetMessagesOf(events)
    this.#tellAll((subscriber) => subscriber.onEvents(events))
  }

  #forgetMessagesOf(events: readonly StoredEvent[]): void {
    for (const stored of events) {
      // By its type first: `event` parses, and only that of a message is asked for.
      if (stored.type !== 'AssistantMessage') continue
      if (stored.event.type === 'AssistantMessage') this.#messages.forget(stored.event.message_id)
    }
  }

  #tellAll(tell: (subscriber: LogSubscriber) => void): void {
    // Those of this moment: who subscribes while others are told has read, or been given, what they are told of.
    for (const subscriber of Array.from(this.#subscribers)) {
      try {
        if (this.#subscribers.has(subscriber)) tell(subscriber)
      } catch (error) {
        this.#deps.onListenerError(error)
      }
    }
  }

  async #close(end: LogEnd): Promise<void> {
    this.#ended = end
    try {
      await this.#log.close()
      await this.#lastShown
    } finally {
      this.#messages.forgetAll()
      this.#tellAll((subscriber) => subscriber.onClose?.(end))
      this.#subscribers.clear()
    }
  }
}

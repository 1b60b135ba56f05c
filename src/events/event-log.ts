/**
 * The log of one conversation, shared by its writer and all its readers: appended events are stored, then published. It
 * knows its subscribers; the feed tracks how far each has read and handles slow readers.
 */
import type { EventDraft } from '../contract/events/event.ts'
import type { TransientDraft } from '../contract/events/transient-event.ts'
import { Problem } from '../contract/problem.ts'
import { closedProblem } from './closed-problem.ts'
import type { AppendOptions, EventFilter, LogPage, ReadOptions, StoredEvent, StoredLog } from './event-store.ts'
import type { Notice } from './firehose/firehose-record.ts'
import { LiveMessages } from './live-messages.ts'
import type { TransientRecord } from './transient-record.ts'
import { createTransientRecord } from './transient-record.ts'

/** Why a log has ended: its conversation was deleted, or the server closes it. */
export type LogEnd = 'deleted' | 'closing'

/** Called synchronously, so it must be fast. Errors go to `onListenerError` and do not affect other subscribers. */
export type LogSubscriber = {
  /** Events that were appended together: durable, in order of seq, and without gaps between calls. */
  readonly onEvents?: (events: readonly StoredEvent[]) => void
  readonly onTransient?: (record: TransientRecord) => void
  /** A notice that is not an event. Only the firehose has notices. */
  readonly onNotice?: (notice: Notice) => void
  /** Called once, last. `lagged` occurs only on the firehose: later events can be read, but are not published. */
  readonly onClose?: (end: LogEnd | 'lagged') => void
}

export type EventLogDeps = {
  /** Owned from here on: closed with this log. */
  readonly log: StoredLog
  readonly onListenerError: (error: unknown) => void
  /** Called with the milliseconds until events were durable. */
  readonly onAppended?: (ms: number) => void
  /** Unix time in milliseconds. */
  readonly now?: () => number
}

/** `lost`: the storage has lost events that it had acknowledged. */
type LogFailure = 'uncertain' | 'lost' | 'taken_over'

/** Calls `append` once, immediately or, for waiting appends, in order. The append rejects with its errors. */
export type AppendGuard = <T>(append: () => Promise<T>) => Promise<T>

export class EventLog {
  readonly conversationId: string
  /** Resolves when `failed` becomes true: the log must be reopened, or, if another writer has it, forgotten. */
  readonly whenFailed: Promise<LogFailure>
  readonly #deps: EventLogDeps
  readonly #log: StoredLog
  readonly #subscribers = new Set<LogSubscriber>()
  readonly #messages = new LiveMessages()
  readonly #failing = Promise.withResolvers<LogFailure>()
  readonly #now: () => number
  #guard: AppendGuard | undefined
  #failed = false
  /** Appends that have begun and are not published. */
  #appending = 0
  /** Rejects if the log stays. */
  #removing: Promise<void> | undefined
  #ended: LogEnd | undefined
  #closing: Promise<void> | undefined
  #lastShown: Promise<unknown> = Promise.resolve()

  constructor(deps: EventLogDeps) {
    this.#deps = deps
    this.#log = deps.log
    this.#now = deps.now ?? Date.now
    this.conversationId = deps.log.conversationId
    this.whenFailed = this.#failing.promise
    void deps.log.whenLost?.then(() => this.#fail('lost'))
  }

  /** Seq of the last durable event; 0 if there is none. Subscribers receive it at the latest in the next microtasks. */
  get head(): number {
    return this.#log.head
  }

  /** Set when closing has begun: from then on nothing can be awaited or read. */
  get ended(): LogEnd | undefined {
    return this.#ended
  }

  /**
   * True if nothing can be appended any more: the store cannot determine what is durable, or another writer took the
   * log over.
   */
  get failed(): boolean {
    return this.#failed
  }

  /** Shows tests, and others, whether there are readers left. */
  get subscriberCount(): number {
    return this.#subscribers.size
  }

  /**
   * Stores the events, all or none, then publishes them to every subscriber, then resolves: when it resolves, all
   * subscribers have received them. Concurrent appends are stored and published in the order of the calls. Throws a
   * `Problem`: `storage_full` and `unavailable` (nothing was stored, try again), `storage_failed` (see `failed`).
   */
  append(drafts: readonly EventDraft[], purpose?: Pick<AppendOptions, 'isForClient'>): Promise<readonly StoredEvent[]> {
    if (this.#removing) return this.#removing.then(refuseDeleted, () => this.append(drafts, purpose))
    const storing = this.#store(drafts, purpose)
    // Publish in the order of the calls, however the promises of the store are chained. No `Queue`: storing must not
    // wait. What is refused does not wait for those before it, and those after it do.
    const before = this.#lastShown
    const showing = Promise.all([storing, before]).then(([events]) => {
      this.#show(events)
      return events
    })
    this.#lastShown = showing.catch(() => before)
    this.#appending++
    void this.#lastShown.then(() => this.#appending--)
    return showing
  }

  /**
   * Calls `remove`, which makes the log unreachable. Appends wait for it, and throw `conversation_deleted`, or are stored if it
   * rejects. Throws `conversation_changed` if the log has an event after this one.
   */
  async endAt(seq: number, remove: () => Promise<void>): Promise<void> {
    while (this.head === seq && this.#appending > 0) await this.#lastShown
    if (this.head !== seq)
      throw new Problem('conversation_changed', 'Something has happened in the conversation meanwhile. Try again.')
    this.#removing = remove()
    await this.#removing.catch((error: unknown) => {
      this.#removing = undefined
      throw error
    })
  }

  /**
   * Publishes a transient event to the current subscribers, immediately: before any event whose `append` has not
   * resolved. Never stores it.
   */
  publish(draft: TransientDraft): void {
    if (this.#ended) return
    const record = createTransientRecord(draft, this.conversationId, this.#now())
    if (record.event.type === 'AssistantDelta') this.#messages.add(record.event)
    if (record.event.type === 'AssistantAborted') this.#messages.forget(record.event.message_id)
    this.#tellAll((subscriber) => subscriber.onTransient?.(record))
  }

  /** Subscribes to new events. Returns an idempotent unsubscribe function. */
  subscribe(subscriber: LogSubscriber): () => void {
    // Copy it, so that two subscriptions of the same object are separate.
    const own = { ...subscriber }
    if (this.#ended) own.onClose?.(this.#ended)
    else this.#subscribers.add(own)
    return () => this.#subscribers.delete(own)
  }

  /** Returns the messages being streamed so far, each part as one delta: what a subscriber of this tick has missed. */
  messagesSoFar(): readonly TransientRecord[] {
    return this.#messages.soFar(this.conversationId, this.#now())
  }

  read(options: ReadOptions): Promise<LogPage> {
    return this.#log.read(options)
  }

  find(eventId: string): Promise<StoredEvent | undefined> {
    return this.#log.find(eventId)
  }

  count(filter?: EventFilter): Promise<number> {
    return this.#log.count(filter)
  }

  /**
   * Wraps each append from now on, for writes that must be durable before it. Resolves when the appends that have begun
   * before are over.
   */
  async guardWith(guard: AppendGuard): Promise<void> {
    this.#guard = guard
    await this.#lastShown
  }

  /** Waits for pending appends, then notifies the subscribers of the end. Idempotent. */
  close(end: LogEnd): Promise<void> {
    return (this.#closing ??= this.#close(end))
  }

  // This is not async: an idle log starts writing within this very call.
  #store(drafts: readonly EventDraft[], purpose?: Pick<AppendOptions, 'isForClient'>): Promise<readonly StoredEvent[]> {
    const guard = this.#guard
    return guard ? guard(() => this.#write(drafts, purpose)) : this.#write(drafts, purpose)
  }

  async #write(
    drafts: readonly EventDraft[],
    purpose?: Pick<AppendOptions, 'isForClient'>,
  ): Promise<readonly StoredEvent[]> {
    const startedAt = performance.now()
    try {
      const outcome = await this.#log.append(drafts, { ...purpose, epoch: this.#log.epoch })
      if (outcome.kind === 'appended') {
        this.#deps.onAppended?.(performance.now() - startedAt)
        return outcome.events
      }
    } catch (error) {
      if (error instanceof Problem && error.code === 'storage_failed') this.#fail('uncertain')
      throw error
    }
    this.#fail('taken_over')
    throw new Problem('storage_failed', 'Another writer has taken over the log of this conversation.')
  }

  #fail(why: LogFailure): void {
    this.#failed = true
    this.#failing.resolve(why)
  }

  #show(events: readonly StoredEvent[]): void {
    if (events.length === 0) return
    // Forget them before the subscribers are called: a reader who joins now receives the durable message, not its
    // beginning too.
    if (!this.#messages.isEmpty) this.#forgetMessagesOf(events)
    this.#tellAll((subscriber) => subscriber.onEvents?.(events))
  }

  #forgetMessagesOf(events: readonly StoredEvent[]): void {
    for (const storedEvent of events) {
      // Check the type first: `event` parses, and only messages need it.
      if (storedEvent.type !== 'AssistantMessage') continue
      if (storedEvent.event.type === 'AssistantMessage') this.#messages.forget(storedEvent.event.message_id)
    }
  }

  #tellAll(tell: (subscriber: LogSubscriber) => void): void {
    // Use the current subscribers: one that is added during the calls has already read or received these records.
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
      await this.#log.close(end === 'deleted' ? end : undefined)
      await this.#lastShown
    } finally {
      this.#messages.forgetAll()
      this.#tellAll((subscriber) => subscriber.onClose?.(end))
      this.#subscribers.clear()
    }
  }
}

function refuseDeleted(): never {
  throw closedProblem('deleted')
}

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

export interface EventLog {
  readonly conversationId: string
  /** Seq of the last durable event; 0 when there is none. Subscribers hear of it at the latest in the next microtasks. */
  readonly head: number
  /** Set once closing began: from then on there is nothing to wait for and nothing to read. */
  readonly ended: LogEnd | undefined
  /** Nothing can be appended any more: the store can't tell what is durable, or another writer took the log over. */
  readonly failed: boolean
  /** Resolves when the store has failed, and the log has to be opened again. Not when another writer took it over. */
  readonly whenStoreFailed: Promise<void>
  /** For tests and to see whether anybody still looks. */
  readonly subscriberCount: number
  /**
   * Stores the events, all or none, then shows them to every subscriber, then resolves: whoever awaits it knows that
   * all have heard. Concurrent appends are stored and shown in the order of the calls.
   * Throws a `Problem`: `storage_full` and `unavailable` (nothing was stored, try again), `storage_failed` (see `failed`).
   */
  append(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]>
  /** Shown to those who are there, at once: before any event whose `append` has not resolved. Never stored. */
  publish(draft: TransientDraft): void
  /** From now on. Returns how to stop, which may be called at any time and more than once. */
  subscribe(subscriber: LogSubscriber): () => void
  /** The messages being streamed, up to now, each part as one delta: what a subscriber of this very tick has missed. */
  messagesSoFar(): readonly TransientRecord[]
  read(options: ReadOptions): Promise<EventPage>
  find(eventId: string): Promise<StoredEvent | undefined>
  count(filter?: EventFilter): Promise<number>
  /** Waits for what was appended, then tells the subscribers why it is over. Closing twice is fine. */
  close(end: LogEnd): Promise<void>
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

export function createEventLog({ log, onListenerError, onAppended, guard, now = Date.now }: EventLogDeps): EventLog {
  const subscribers = new Set<LogSubscriber>()
  const messages = new LiveMessages()
  let failed = false
  const storeFailed = Promise.withResolvers<void>()
  let ended: LogEnd | undefined
  let closing: Promise<void> | undefined
  let lastShown: Promise<unknown> = Promise.resolve()

  // Not async: a quiet log starts writing within this very call.
  function store(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]> {
    return guard ? guard(() => write(drafts)) : write(drafts)
  }

  async function write(drafts: readonly EventDraft[]): Promise<readonly StoredEvent[]> {
    const startedAt = performance.now()
    try {
      const outcome = await log.append(drafts, { epoch: log.epoch })
      if (outcome.kind === 'appended') {
        onAppended?.(performance.now() - startedAt)
        return outcome.events
      }
    } catch (error) {
      if (error instanceof Problem && error.code === 'storage_failed') {
        failed = true
        storeFailed.resolve()
      }
      throw error
    }
    failed = true
    throw new Problem('storage_failed', 'Another writer has taken over the log of this conversation.')
  }

  function show(events: readonly StoredEvent[]): void {
    if (events.length === 0) return
    // Before the subscribers are told: one who joins from here on gets the durable message, not its beginnings too.
    if (!messages.isEmpty) forgetMessagesOf(events)
    tellAll((subscriber) => subscriber.onEvents(events))
  }

  function forgetMessagesOf(events: readonly StoredEvent[]): void {
    for (const stored of events) {
      // By its type first: `event` parses, and only that of a message is asked for.
      if (stored.type !== 'AssistantMessage') continue
      if (stored.event.type === 'AssistantMessage') messages.forget(stored.event.message_id)
    }
  }

  function tellAll(tell: (subscriber: LogSubscriber) => void): void {
    // Those of this moment: who subscribes while others are told has read, or been given, what they are told of.
    for (const subscriber of Array.from(subscribers)) {
      try {
        if (subscribers.has(subscriber)) tell(subscriber)
      } catch (error) {
        onListenerError(error)
      }
    }
  }

  async function closeLog(end: LogEnd): Promise<void> {
    ended = end
    try {
      await log.close()
      await lastShown
    } finally {
      messages.forgetAll()
      tellAll((subscriber) => subscriber.onClose?.(end))
      subscribers.clear()
    }
  }

  return {
    conversationId: log.conversationId,
    get head() {
      return log.head
    },
    get ended() {
      return ended
    },
    get failed() {
      return failed
    },
    whenStoreFailed: storeFailed.promise,
    get subscriberCount() {
      return subscribers.size
    },

    append(drafts) {
      const stored = store(drafts)
      // In the order of the calls, however the promises of the store are chained. No `Queue`: the storing must not wait.
      const shown = lastShown.then(async () => {
        const events = await stored
        show(events)
        return events
      })
      lastShown = shown.catch(() => undefined)
      // Its fate is told through `shown`; alone, it would be an unhandled rejection while another is awaited before it.
      stored.catch(() => undefined)
      return shown
    },

    publish(draft) {
      if (ended) return
      const record = createTransientRecord(draft, log.conversationId, now())
      if (record.event.type === 'AssistantDelta') messages.add(record.event)
      if (record.event.type === 'AssistantAborted') messages.forget(record.event.message_id)
      tellAll((subscriber) => subscriber.onTransient?.(record))
    },

    subscribe(subscriber) {
      // A copy, so that each subscription is its own, also of one subscriber that comes twice.
      const own = { ...subscriber }
      if (ended) own.onClose?.(ended)
      else subscribers.add(own)
      return () => subscribers.delete(own)
    },

    messagesSoFar: () => messages.soFar(log.conversationId, now()),
    read: (options) => log.read(options),
    find: (eventId) => log.find(eventId),
    count: (filter) => log.count(filter),
    close: (end) => (closing ??= closeLog(end)),
  }
}

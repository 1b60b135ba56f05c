/** The interface to durable storage of events: the guarantees of every store. */
import type { Event, EventDraft } from '../contract/events/event.ts'

/**
 * An event as stored. `json` is its one serialisation: lists and streams send exactly the bytes on disk. It begins with
 * the fields of an `EventHeader`, in order.
 */
export interface StoredEvent {
  readonly seq: number
  readonly type: string
  readonly json: string
  /** Parsed on first use, not validated: its type and `version` may be newer than this server's. */
  readonly event: Event
}

export type AppendOptions = {
  /** The head that the writer expects; the append is refused with `head_moved` if the log has grown since. */
  readonly expectedHead?: number
  /** The writer's lease; the append is refused with `fenced` if a later one was issued. */
  readonly epoch?: number
  /**
   * True if a client waits for it: it is refused when an outage of the storage takes too long. Others, which are those of
   * runs, wait for its end.
   */
  readonly isForClient?: boolean
}

export type AppendOutcome =
  | { readonly kind: 'appended'; readonly events: readonly StoredEvent[] }
  | { readonly kind: 'head_moved'; readonly head: number }
  | { readonly kind: 'fenced' }

export type EventFilter = {
  readonly types?: ReadonlySet<string>
  readonly source?: Event['source']
  /**
   * A case-insensitive substring of a text in the event's own fields; field names, ids, times and images are not
   * searched.
   */
  readonly q?: string
  /** RFC 3339; inclusive. */
  readonly since?: string
  /** RFC 3339; exclusive. */
  readonly until?: string
}

export type ReadOptions = EventFilter & {
  /** Events with a higher seq only; default 0. */
  readonly afterSeq?: number
  /** Events with a lower seq only; default: up to the head at the time of the call. */
  readonly beforeSeq?: number
  readonly order?: 'asc' | 'desc'
  /** Maximum number of events. */
  readonly limit: number
  /** The call ends after scanning this many bytes; it scans at least one event. Default: the store's own limit. */
  readonly maxBytes?: number
}

/**
 * `scannedTo` is the last seq scanned: where to continue, as `afterSeq` or, descending, as `beforeSeq`. Undefined when
 * the range is exhausted. One call scans a bounded part of the log, so a page may be short, or empty, without being the
 * last.
 */
export type LogPage = { readonly events: readonly StoredEvent[]; readonly scannedTo: number | undefined }

/**
 * The events of one conversation. Timestamps never decrease within a log, and an event's id contains its millisecond.
 *
 * `append` writes all events or none, gives them consecutive seqs, and resolves only when they are durable;
 * concurrent appends are stored in the order of the calls. Drafts are read within the call. It throws a `Problem`:
 * `storage_full` if there is no room, and `unavailable` if the log cannot be opened now (both times the log stays
 * usable and nothing of the batch is stored), `storage_failed` if the store cannot determine what is durable (every
 * later append fails too; reopen the log).
 * `read` returns only durable events and may run during appends, also after these failed. It, `find` and `count` throw
 * `conversation_damaged` if they encounter something that is not an event; so does `StoredEvent.event` if it does not
 * parse.
 * `close` waits for pending appends; afterwards everything throws `unavailable`, or `conversation_deleted` if that is why.
 */
export interface StoredLog {
  /**
   * Makes each append store with its events what lists show after them. Absent in a storage that no other instance can
   * use.
   */
  listWith?(listed: ListedState): void
  readonly conversationId: string
  /** Resolves if durable events are not there any more: the log stores nothing then, and must be reopened. */
  readonly whenLost?: Promise<void>
  /** Seq of the last durable event; 0 if there is none. */
  readonly head: number
  /** The writer's lease on this log, to be passed to each append. */
  readonly epoch: number
  append(drafts: readonly EventDraft[], options?: AppendOptions): Promise<AppendOutcome>
  read(options: ReadOptions): Promise<LogPage>
  /** Returns the event with this id, or undefined. */
  find(eventId: string): Promise<StoredEvent | undefined>
  count(filter?: EventFilter): Promise<number>
  close(why?: 'deleted'): Promise<void>
}

/** What lists show of a conversation after its last event. It never changes. */
export interface ListedState {
  after(events: readonly StoredEvent[]): ListedState
  /** A JSON value. */
  readonly row: object
}

/** A read-only view of a log at one moment: `read` never goes beyond that `head`. */
export type LogView = AsyncDisposable & Pick<StoredLog, 'head' | 'read'>

/**
 * Other files in the directory of a new log. They become durable together with the log's directory entry: one journal
 * commit of the file system instead of two.
 */
export type Beside = { readonly named: Promise<unknown>; readonly write: () => Promise<void> }

/** Stores the logs. Ids are lower-case UUIDs; any other is `conversation_not_found`. */
export interface EventStore {
  /**
   * Creates a new, empty log. Its directory entry is durable once the first append resolves; with other files, when the
   * log is returned. Throws `conversation_exists`.
   */
  create(conversationId: string, beside?: Beside): Promise<StoredLog>
  /**
   * Creates a new log that begins with events of another one, from seq 1 on: their seqs, times and contents are kept,
   * their ids are new. `ending` is called after they are read, and its events follow them. The new log is complete and
   * durable, or does not exist; errors of `events` are rethrown. Throws `conversation_exists`.
   */
  copy(conversationId: string, events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog>
  /**
   * Throws `conversation_not_found` or `conversation_damaged`, and never returns a partly read log. Opening cuts off a
   * write that a crash interrupted; the cut bytes are kept in another file, reported in `repaired`. A log has one
   * writer at a time: the previous one is `fenced` from here on. `isReleased`: no work has begun since its last writer.
   */
  open(conversationId: string): Promise<{ log: StoredLog; repaired: string | undefined; isReleased?: boolean }>
  /** Removes the log, if it exists; nothing of it can be read when this resolves. */
  delete(conversationId: string): Promise<void>
}

/** The same store for readers only. */
export interface LogViews {
  /**
   * Views a log, concurrently with its writer if there is one, without taking it over; a torn write is left in place.
   * Returns only durable events. Throws as `open` does; its `read` throws `unavailable` after the writer has closed.
   */
  view(conversationId: string): Promise<LogView>
}

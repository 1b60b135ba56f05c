/** The seam to durable storage of events: what every store promises, whatever it is made of. */
import type { Event, EventDraft } from '../contract/events/event.ts'

/**
 * An event as stored. `json` is its one serialisation: what is on disk is what lists and streams send. It begins with the
 * fields of an `EventHeader`, in their order.
 */
export interface StoredEvent {
  readonly seq: number
  readonly type: string
  readonly json: string
  /** Parsed on first use, not validated: its type and `version` may be later than this server's. */
  readonly event: Event
}

export type AppendOptions = {
  /** The head the writer decided on; the append is refused with `head_moved` when the log has grown since. */
  readonly expectedHead?: number
  /** The writer's lease; the append is refused with `fenced` when a later one was handed out. */
  readonly epoch?: number
}

export type AppendOutcome =
  | { readonly kind: 'appended'; readonly events: readonly StoredEvent[] }
  | { readonly kind: 'head_moved'; readonly head: number }
  | { readonly kind: 'fenced' }

export type EventFilter = {
  readonly types?: ReadonlySet<string>
  readonly source?: Event['source']
  /** Part of a text in the event's own fields, in any case; names of fields, ids and times are none, nor are images. */
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
  /** At most so many events. */
  readonly limit: number
  /** The call ends after having looked at so many bytes; one event is always looked at. Default: the store's own bound. */
  readonly maxBytes?: number
}

/**
 * `scannedTo` is the last seq looked at: where to go on, as `afterSeq` or, descending, as `beforeSeq`. Undefined when the
 * range is exhausted. One call looks at a bounded part of the log, so a page may be short, or empty, and yet not the last.
 */
export type EventPage = { readonly events: readonly StoredEvent[]; readonly scannedTo: number | undefined }

/**
 * The events of one conversation. Timestamps never go back within a log, and an event's id carries its millisecond.
 *
 * `append` writes all of the events or none, gives them consecutive seqs, and resolves only when they are durable;
 * concurrent appends are stored in the order of the calls. Drafts are read within the call. It throws a `Problem`:
 * `storage_full` when there is no room, and `unavailable` when the log can't be opened now (both times the log stays
 * usable and nothing of the batch is left), `storage_failed` when the store can't tell what is durable (every later
 * append fails too; open the log again).
 * `read` sees only what is durable and may run beside appends, also after these failed. It, `find` and `count` throw
 * `conversation_damaged` when they come upon what is no event; so does `StoredEvent.event` of one that doesn't parse.
 * `close` waits for what was appended; after it everything throws `unavailable`.
 */
export interface StoredLog {
  readonly conversationId: string
  /** Seq of the last durable event; 0 when there is none. */
  readonly head: number
  /** The writer's lease on this log, to be handed back with each append. */
  readonly epoch: number
  append(drafts: readonly EventDraft[], options?: AppendOptions): Promise<AppendOutcome>
  read(options: ReadOptions): Promise<EventPage>
  /** The event with this id, or undefined. */
  find(eventId: string): Promise<StoredEvent | undefined>
  count(filter?: EventFilter): Promise<number>
  close(): Promise<void>
}

/** A log as it was found by someone who only looks: `read` never goes beyond that `head`. */
export type LogView = AsyncDisposable & Pick<StoredLog, 'head' | 'read'>

/**
 * Files of others in the directory of a new log. They are made durable together with the log's own place: one commit of the
 * file system's journal instead of two.
 */
export type Beside = { readonly written: Promise<void>; readonly sync: () => Promise<void> }

/**
 * Where logs live. Ids are lower-case UUIDs; any other is `conversation_not_found`.
 */
export interface EventStore {
  /** A new, empty log, whose place is durable. Throws `conversation_exists`. */
  create(conversationId: string, beside?: Beside): Promise<StoredLog>
  /**
   * A new log that begins with events of another one, from seq 1 on: their seqs, times and contents stay, their ids are
   * new. `ending` is asked once they are read, and follows them. It is there as a whole and durable, or not at all; what
   * `events` throws passes through. Throws `conversation_exists`.
   */
  copy(conversationId: string, events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog>
  /**
   * Throws `conversation_not_found` or `conversation_damaged`, and never gives a half-read log. Opening cuts a write that
   * was cut short by a crash; what was cut is kept aside and told in `repaired`. A log has one writer at a time: whoever
   * had it open before is `fenced` from here on.
   */
  open(conversationId: string): Promise<{ log: StoredLog; repaired: string | undefined }>
  /** Removes the log, there or not; nothing of it can be read when this resolves. */
  delete(conversationId: string): Promise<void>
}

/** The same store for those who only look. */
export interface LogViews {
  /**
   * Looks at a log beside its writer, if there is one, and takes nothing over; what a crash has torn off it leaves as it
   * is. All it shows is durable. Throws as `open` does; its `read` throws `unavailable` when the writer it looks at closes.
   */
  view(conversationId: string): Promise<LogView>
}

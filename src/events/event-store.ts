/** The seam to durable storage of events: what every store promises, whatever it is made of. */
import type { Event, EventDraft } from '../contract/event.ts'

/** An event as stored. `json` is its one serialisation: what is on disk is what lists and streams send. */
export interface StoredEvent {
  readonly seq: number
  readonly type: string
  readonly json: string
  /** Parsed on first use. */
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
}

/** `scannedTo` is the last seq looked at: where a bounded scan goes on. Undefined when the range is exhausted. */
export type EventPage = { readonly events: readonly StoredEvent[]; readonly scannedTo: number | undefined }

/**
 * The events of one conversation.
 *
 * `append` writes all of the events or none, gives them consecutive seqs, and resolves only when they are durable;
 * concurrent appends are stored in the order of the calls. It throws a `Problem`: `storage_full` when there is no room
 * (the log stays usable and nothing of the batch is left), `storage_failed` when the store can't tell what is
 * durable (every later append fails too; open the log again). `read` sees only what is durable and may run beside appends.
 * `close` waits for what was appended; after it the object is not used again.
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

/**
 * Where logs live. `open` throws a `Problem` (`conversation_not_found`, `conversation_damaged`,
 * `conversation_from_newer_version`) and never a half-read log. Opening cuts an incomplete batch at the tail; what was
 * cut is kept aside and told in `repaired`. A log is opened by one writer at a time.
 */
export interface EventStore {
  create(conversationId: string): Promise<StoredLog>
  open(conversationId: string): Promise<{ log: StoredLog; repaired: string | undefined }>
  /** Removes the log; nothing of it can be read when this resolves. */
  delete(conversationId: string): Promise<void>
}

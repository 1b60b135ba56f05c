/**
 * The seam to everything that is durable about conversations: what each storage promises, whatever it is made of. What the
 * stored values mean is decided by the layers above: here they are JSON values, to be parsed by their reader.
 *
 * Words used below. *Durable*: a power failure does not lose it once the promise resolves. *Written*: the end of the
 * process does not lose it, a power failure may. *Cache*: losing it costs time and nothing else.
 *
 * Where nothing else is said, each method may be called at any time and beside any other; it rejects with what the medium
 * reports, for a lack of room with an error for which `isOutOfRoom` holds, or with a `Problem` `storage_full`. A method
 * that rejects has left the former value in place.
 *
 * One process at a time uses a storage. Every method works for a conversation that does not exist, as if it were empty.
 */
import type { Event, EventDraft } from '../contract/events/event.ts'
import type { Status } from '../contract/events/status.ts'
import type { EventStore, LogViews, StoredLog } from '../events/event-store.ts'
import type { Sealer } from '../security/sealer.ts'

export interface Storage extends LogViews, AsyncDisposable {
  readonly keys: DataKeys
  /** Holds the `directory` of each conversation, and nothing that commands may read. */
  readonly directory: string
  /** Of all conversations of which anything is there: whole ones, and what a crash left of a create or a delete. */
  ids(): Promise<string[]>
  /** Everything that belongs to one conversation, existing or not. Does nothing by itself; two of the same id are equal. */
  conversation(id: string): ConversationStorage
  /** Conversations whose log may hold what a start of the server has to recover. */
  readonly active: Marks
  /** Conversations with events that may wait for delivery to their callbacks. */
  readonly due: Marks
  readonly deletions: Deletions
  readonly sharedWorkdirs: SharedWorkdirs
  readonly summaries: SummaryCache
  /** Resolves when nothing is being written any more, as long as nothing new comes. For before the process ends. */
  settled(): Promise<void>
  /** Gives the storage up for the next process. Does not wait for what is being written. */
  [Symbol.asyncDispose](): Promise<void>
}

export type DataKeys = {
  /** For everything that takes key material: the first encrypts, each is tried to decrypt; the operator's own come last. */
  readonly material: readonly [string, ...string[]]
  /** How many keys of the storage none of the operator's opens: what they encrypted cannot be read. */
  readonly locked: number
}

/**
 * What is stored of one conversation.
 *
 * The order of a create: `reserve`, then `createLog` or `copyLog`, then the first append to the log. Until the log holds
 * an event the conversation does not exist for anyone: a start of the server removes what a crash left of it.
 */
export interface ConversationStorage {
  readonly id: string
  /** On a disk of this machine, for files of processes that work for the conversation. There from `reserve` until `remove`. */
  readonly directory: string

  /**
   * Takes the id for a conversation that is being made. Throws `conversation_exists` when anything of it is there, also
   * data that was put there by hand: that is neither used nor, when the create fails, removed. Not durable before the log is.
   */
  reserve(): Promise<void>
  /** Whether there is anything of it, whole or not. */
  exists(): Promise<boolean>
  /** When that was made, RFC 3339, as far as the medium knows: for a conversation whose log cannot be read. */
  createdAt(): Promise<string>

  /**
   * A new, empty log, and the first secrets. Both are durable together when it resolves, also for the id itself. After a
   * crash before that, either, both or nothing is there. When it rejects nothing is being written any more.
   */
  createLog(secrets: SecretValues): Promise<StoredLog>
  /** As `EventStore.copy`. */
  copyLog(events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog>
  /** As `EventStore.open`. */
  openLog(): ReturnType<EventStore['open']>
  /**
   * The last event, where that can be found out at once and without opening the log; undefined says nothing. Only for a log
   * that nobody writes. What it returns need not be durable.
   */
  lastEvent(): { readonly seq: number; readonly timestamp: string } | undefined

  /** The last snapshot that was written and is readable, a cache: an older one or undefined may come after a crash. */
  readSnapshot(): Promise<unknown>
  /**
   * Writes a snapshot in the place of all others. Of several that wait at the same time only the newest is written, and all
   * of these promises resolve with it; an older one never replaces a newer one. The object must not change afterwards.
   */
  writeSnapshot(snapshot: object): Promise<void>

  /** Empty when it has none. Throws the `Problem` `storage_failed`, which says what to do, when no key decrypts them. */
  readSecrets(): Promise<SecretValues>
  /**
   * Replaces all of them, encrypted with the first key; durable. Secrets that could not be read in this process are kept
   * aside, for their key may be found again. Not to be called again before the promise settles.
   */
  writeSecrets(values: SecretValues): Promise<void>
  /** Encrypts other things of this conversation that hold secrets. What it sealed is opened for no other conversation. */
  readonly sealer: Sealer

  readonly callbacks: StoredDocument
  readonly commands: CommandStorage

  /** Notes, durably and before the first file, that the workdir made for it is being filled from another one. */
  markCopying(): Promise<void>
  /** Means nothing any more once there is a log. */
  isCopying(): Promise<boolean>

  /**
   * Removes everything, after the snapshots that are being written; the log must be closed, and no snapshot may follow. A
   * crash in between leaves a part, and the id is still in `ids`. Not durable: what a deletion needs is its mark.
   */
  remove(): Promise<void>
  /** The same for one that could not be made: ends its log too, if it is open. */
  discard(): Promise<void>
}

/** By name, in groups that do not mix (`llm`: the model's credentials). */
export type SecretValues = Record<string, Record<string, string>>

/** One JSON value. */
export interface StoredDocument {
  /** Undefined if there is no value, `null` if it is not JSON. Throws what the medium reports. */
  read(): Promise<unknown>
  /** Replaces the value, as a whole or not at all; durable. Not to be called again before the promise settles. */
  write(value: unknown): Promise<void>
  /** Keeps what is there for the operator, and has no value from here on. Resolves to where it is kept. */
  setAside(): Promise<string>
}

/** What a record of a command is found by. `keyHash`: the first 16 hex digits of a hash of its key; undefined for one without a key. */
export type CommandEntry = { readonly id: string; readonly keyHash: string | undefined }

/** The records of one conversation's commands, and where the commands write their output. */
export interface CommandStorage {
  /** Where outputs are, for the disk quota. Made by the first `write`. */
  readonly directory: string
  /** All there are, oldest first. */
  entries(): Promise<CommandEntry[]>
  /** Undefined for one that has gone meanwhile, or that a power failure has torn, as happens only to those not `durable`. */
  read(entry: CommandEntry): Promise<unknown>
  /** Replaces the record, as a whole or not at all. `durable`, or else written. One write of an entry at a time. */
  write(entry: CommandEntry, record: unknown, options: { readonly durable: boolean }): Promise<void>
  /** With its output. A crash in between may leave the record without it. */
  remove(entry: CommandEntry): Promise<void>
  /** A file that the shell writes; there is none before it wrote something. */
  outputPath(id: string, stream: 'stdout' | 'stderr'): string
  /** Bytes in the files of these commands. */
  outputBytes(ids: readonly string[]): Promise<number>
}

/** A set of conversations. `set` and `clear` of the same id are not to be under way at the same time. */
export interface Marks {
  /** Durable. */
  set(id: string): Promise<void>
  /** Not durable: after a crash the mark may be there again. */
  clear(id: string): Promise<void>
  ids(): Promise<string[]>
}

/** Conversations that were deleted, for ever: an id is not used a second time. */
export interface Deletions {
  /**
   * Durable, and to be called before anything of the conversation is removed. `key`, that of the request that made it, is
   * durable with it: after a crash in between there is neither, or the key alone, which then counts for nothing new.
   */
  mark(id: string, key?: CreationKey): Promise<void>
  has(id: string): Promise<boolean>
  ids(): Promise<string[]>
  /** Those that were used after that time, Unix time in milliseconds; the others are removed. */
  keys(after: number): Promise<CreationKey[]>
}

/** Which conversation a key made; `at` is when, RFC 3339. */
export type CreationKey = {
  readonly key: string
  readonly bodyHash: string
  readonly id: string
  readonly at: string
}

/** Which conversations work in a directory that was made for one of them. `workdir` is a real path. */
export interface SharedWorkdirs {
  /** Notes, durably, that these work there, beside those that were noted before. */
  add(workdir: string, ids: readonly string[]): Promise<void>
  /** Whether any was noted. */
  isShared(workdir: string): Promise<boolean>
  has(workdir: string, id: string): Promise<boolean>
  /**
   * Forgets this one, and all of which nothing is there: a fork that a crash cut off never worked there. Resolves to
   * whether nobody is noted any more, or ever was. Not durable: after a crash it may be noted again, and is forgotten so.
   */
  leave(workdir: string, id: string): Promise<boolean>
}

/** What is kept in memory of every conversation; small, because there may be many. Times are Unix times in milliseconds. */
export type Summary = {
  readonly id: string
  readonly status: Status
  /** Seq of the last event; 0 when the log cannot be read. */
  readonly lastSeq: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly title: string | undefined
  readonly userId: string | undefined
  readonly preview: string
  readonly idempotency: { readonly key: string; readonly bodyHash: string } | undefined
}

/** The summaries of all conversations, so that a start of the server need not look at each. A cache; it never rejects. */
export interface SummaryCache {
  /** What was noted when the storage was opened. Once, before anything else. */
  read(): Promise<NotedSummaries>
  /**
   * Begins a note of this conversation: the summary counts for as long as the log is as it is at this call. Nobody may
   * write the log between this call and the moment for which the summary is true, whichever is first. Written soon.
   */
  noteFor(id: string): (summary: Summary) => void
  /** Nothing of the conversation is left when it resolves. */
  forget(id: string): Promise<void>
  /** For after a start: forgets those that are gone, and frees the room they took. */
  tidy(isThere: (id: string) => boolean): Promise<void>
}

export interface NotedSummaries {
  /**
   * In the order of the ids, those whose log is still the one that they were noted of; undefined for each other. Only while
   * nobody writes the logs. Throws the reason of a signal that is aborted.
   */
  current(ids: readonly string[], signal: AbortSignal): Promise<(Summary | undefined)[]>
}

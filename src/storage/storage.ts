/**
 * The interface to all durable data of the server: the guarantees of every storage. The layers above decide what the stored
 * values mean: here they are JSON values, parsed by their reader.
 *
 * Terms. *Durable*: survives a power failure once the promise resolves. *Written*: survives the end of the process, but
 * maybe not a power failure. *Cache*: losing it only costs time.
 *
 * Unless stated otherwise, each method may be called at any time and concurrently with any other; it rejects with the
 * error of the medium, if there is no room with an error for which `isOutOfRoom` is true, or with a `Problem`
 * `storage_full`. A method that rejects has kept the former value.
 *
 * One process at a time uses a storage. Every method works for a conversation that does not exist, as if it were empty.
 *
 * What belongs to one process or machine is not here: the lock, `local.json`, stream tickets unless several instances share
 * them, the notes of unfinished files in workdirs, and the files that agents may not read.
 */
import type { Event, EventDraft } from '../contract/events/event.ts'
import type { EventStore, LogViews, StoredLog } from '../events/event-store.ts'
import type { FirehoseOrderStore } from '../events/firehose/firehose-order.ts'
import type { Sealer } from '../security/sealer.ts'
import type { Availability } from './availability.ts'
import type { SearchIndex } from './search-index.ts'
import type { Instances, SharedConversations, ReplayTable, TicketTable } from './instances.ts'
import type { Summary } from './summary.ts'
import type { UsageTable } from './usage.ts'

export type { Summary } from './summary.ts'

export interface Storage extends LogViews, AsyncDisposable {
  readonly keys: DataKeys
  readonly availability: Availability
  /** Undefined if no other instance can use the storage. */
  readonly instances?: Instances
  /** Undefined while no other instance may use it. */
  readonly shared?: SharedConversations | undefined
  /** Undefined while no other instance may use it: tickets are in memory then. */
  readonly tickets?: TicketTable | undefined
  /** Undefined where replays are in files. */
  readonly replays?: ReplayTable | undefined
  /** True if other instances can read the directories of conversations. */
  readonly sharesFiles?: boolean
  /** Contains the `directory` of each conversation, and nothing that commands may read. */
  readonly directory: string
  /**
   * Returns the ids of conversations with any data: complete ones, and remains of interrupted creates and deletes. What another
   * instance is just making is not among them.
   */
  ids(): Promise<string[]>
  /** Returns the storage of one conversation, existing or not. Has no effect by itself; two of the same id are equal. */
  conversation(id: string): ConversationStorage
  /** Conversations whose log may contain work that a start of the server must recover. */
  readonly active: Marks
  /** Conversations with events that may be pending for delivery to their callbacks. */
  readonly due: Marks
  readonly deletions: Deletions
  readonly sharedWorkdirs: SharedWorkdirs
  readonly apiKeys: CredentialTable
  readonly logins: CredentialTable
  /** The table has a name instead of an id. */
  readonly profiles: CredentialTable
  /** The order of the firehose, made when it is opened first. */
  readonly firehose: FirehoseOrderStore
  readonly summaries: SummaryCache
  readonly snapshots: Snapshots
  readonly usage: UsageTable
  readonly search: SearchIndex
  /** Resolves when no write is in progress, provided that no new one begins. Call it before the process ends. */
  settled(): Promise<void>
  /** Releases the storage for the next process. Does not wait for writes in progress. */
  [Symbol.asyncDispose](): Promise<void>
}

export type DataKeys = {
  /**
   * The keys for everything that takes key material: the first key encrypts, each is tried to decrypt; the operator's
   * own come last.
   */
  readonly material: readonly [string, ...string[]]
  /** Number of stored keys that none of the operator's keys decrypts: data encrypted with them cannot be read. */
  readonly locked: number
}

/**
 * The stored data of one conversation.
 *
 * The order of a create: `reserve`, then `createLog` or `copyLog`, then the first append to the log. Until the log
 * contains an event, the conversation does not exist for anyone: a start of the server removes the remains of an
 * interrupted create.
 */
export interface ConversationStorage {
  readonly id: string
  /**
   * The directory is on a local disk, for files of processes that work for the conversation. Exists from `reserve`
   * until `remove`.
   */
  readonly directory: string

  /**
   * Reserves the id for a new conversation. Throws `conversation_exists` if it has any data, including files that were
   * put there by hand: these are neither used nor, if the create fails, removed. Not durable before the log is.
   */
  reserve(): Promise<void>
  /** Returns true if any data of it exists, complete or not. */
  exists(): Promise<boolean>
  /** Returns its creation time, RFC 3339, as far as the medium knows: for a conversation whose log cannot be read. */
  createdAt(): Promise<string>

  /**
   * Creates an empty log and stores the first secrets. Both, and the id itself, are durable when the first append to the
   * log resolves; secrets before that append begins. After an earlier crash either, both or nothing exists. After a
   * rejection no write is in progress.
   */
  createLog(secrets: SecretValues): Promise<StoredLog>
  /** See `EventStore.copy`. */
  copyLog(events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog>
  /** See `EventStore.open`. */
  openLog(): ReturnType<EventStore['open']>
  /** Call it when the log was closed with no work begun: the next `openLog` may say so, also to another process. */
  release(): Promise<void>
  /**
   * Returns the last event if that is possible at once and without opening the log; undefined otherwise. Call it only for
   * a log that nobody writes. The returned event need not be durable.
   */
  lastEvent(): Promise<LastEvent | undefined>

  /**
   * Returns an empty object if it has none. Throws the `Problem` `storage_failed`, which says what to do, if no key
   * decrypts them.
   */
  readSecrets(): Promise<SecretValues>
  /**
   * Replaces all secrets, encrypted with the first key; durable. Secrets that this process could not decrypt are kept
   * separately, because their key may be found again. Do not call it again before the promise settles.
   */
  writeSecrets(values: SecretValues): Promise<void>
  /** Encrypts other data of this conversation that contains secrets. No other conversation can decrypt it. */
  readonly sealer: Sealer

  readonly callbacks: StoredDocument
  readonly commands: CommandStorage

  /** Records, durably and before the first file, that its new workdir is being copied from another one. */
  markCopying(): Promise<void>
  /** Meaningless as soon as there is a log. */
  isCopying(): Promise<boolean>

  /** Removes temporary data that a killed server has left. Call it before anything else is stored. */
  removeLeft(): Promise<void>
  /**
   * Removes everything, after pending snapshots; the log must be closed, and no snapshot may follow. After a crash in
   * between, some data is left, and the id is still in `ids`. Not durable: a deletion relies on its mark.
   */
  remove(): Promise<void>
  /** Does the same for a failed create: also closes its log, if it is open. */
  discard(): Promise<void>
}

/** `timestamp`: RFC 3339. */
export type LastEvent = { readonly seq: number; readonly timestamp: string }

/** The values by name, in groups that are kept apart (`llm`: the model's credentials). */
export type SecretValues = Record<string, Record<string, string>>

/** One JSON value. */
export interface StoredDocument {
  /** Returns undefined if there is no value, `null` if it is not JSON. Throws the medium's error. */
  read(): Promise<unknown>
  /** Replaces the value atomically; durable. Do not call it again before the promise settles. */
  write(value: unknown): Promise<void>
  /** Keeps the current value aside for the operator, and continues without a value. Resolves to where it is kept. */
  setAside(): Promise<string>
}

/**
 * Identifies the record of a command. `keyHash`: the first 16 hex digits of a hash of its key; undefined without a key.
 */
export type CommandEntry = { readonly id: string; readonly keyHash: string | undefined }

/** The records of one conversation's commands, and the location of their output. */
export interface CommandStorage {
  /** The directory of outputs, for the disk quota. Created by the first `write`. */
  readonly directory: string
  /** Returns all entries, oldest first. */
  entries(): Promise<CommandEntry[]>
  /**
   * Returns undefined if it was removed meanwhile or torn by a power failure, which happens only if it was not
   * `durable`.
   */
  read(entry: CommandEntry): Promise<unknown>
  /** Replaces the record atomically; `durable`, otherwise written. Only one write of an entry at a time. */
  write(entry: CommandEntry, record: unknown, options: { readonly durable: boolean }): Promise<void>
  /** Removes the record with its output. A crash in between may leave the record without output. */
  remove(entry: CommandEntry): Promise<void>
  /** The path of a file that the shell writes; it does not exist before the first output. */
  outputPath(id: string, stream: 'stdout' | 'stderr'): string
  /** Returns the size of these commands' output files, in bytes. */
  outputBytes(ids: readonly string[]): Promise<number>
}

/** A set of conversations. `set` and `clear` of the same id must not run concurrently. */
export interface Marks {
  /** Durable. */
  set(id: string): Promise<void>
  /** Clears the mark, not durably: after a crash the mark may exist again. */
  clear(id: string): Promise<void>
  ids(): Promise<string[]>
}

/** Permanently deleted conversations: an id is never used a second time. */
export interface Deletions {
  /**
   * Durable; call it before any data of the conversation is removed. `key`, the key of its create request, is durable
   * with it: after a crash in between there is neither, or only the key, which then has no effect. On a full disk the key
   * follows when there is room; a crash before forgets it.
   */
  mark(id: string, key?: CreationKey): Promise<void>
  has(id: string): Promise<boolean>
  ids(): Promise<string[]>
  /** Returns the keys used after that time, Unix time in milliseconds; removes the others. */
  keys(after: number): Promise<CreationKey[]>
}

/** The conversation that a key created; `at` is the time, RFC 3339. */
export type CreationKey = {
  readonly key: string
  readonly bodyHash: string
  readonly id: string
  readonly at: string
}

/** Records which conversations work in a directory that was created for one of them. `workdir` is a real path. */
export interface SharedWorkdirs {
  /** Adds these conversations, durably. */
  add(workdir: string, ids: readonly string[]): Promise<void>
  /** Returns true if any conversation is recorded. */
  isShared(workdir: string): Promise<boolean>
  has(workdir: string, id: string): Promise<boolean>
  /** Does nothing if none is recorded for the former path, or some are for the new one. */
  move(workdir: string, to: string): Promise<void>
  /**
   * Removes this conversation, and all that no longer exist: an interrupted fork never worked there. Resolves to true
   * if none is recorded. Not durable: after a crash it may be recorded again, and is then removed the same way.
   */
  leave(workdir: string, id: string): Promise<boolean>
}

/** `value` is a JSON value; `usedAt`: RFC 3339, undefined if it was never noted. */
export type StoredCredential = { readonly id: string; readonly value: unknown; readonly usedAt: string | undefined }

/** API keys, logins or profiles. There are at most some ten thousand: readers keep them in memory, with their version. */
export interface CredentialTable {
  /** Returns all keys, oldest first. */
  read(): Promise<{ readonly version: number; readonly keys: readonly StoredCredential[] }>
  /** Returns the current version, which each change increases. Cheap: it is called for each unknown credential. */
  version(): Promise<number>
  /**
   * Stores the value of a key, or removes the key if no value is given; durable. Returns the new version. Changes nothing and
   * returns undefined if `version` is not the current one: a revoked key must not come back with a rotation.
   */
  change(version: number, id: string, value: unknown): Promise<number | undefined>
  /** Stores when these keys were used, RFC 3339, and ignores those that do not exist. Written; no change of the version. */
  noteUses(uses: ReadonlyMap<string, string>): Promise<void>
}

/** The last known state of each conversation, so that its log need not be read. */
export interface Snapshots {
  /** Returns the last written one that is readable. A cache: after a crash it may be an older one or undefined. */
  read(id: string): Promise<unknown>
  /**
   * Replaces it. Of several concurrent calls only the newest snapshot is written, and all of their promises resolve with
   * it; an older one never replaces a newer one. The object must not change afterwards.
   */
  write(id: string, snapshot: object): Promise<void>
}

/** The summaries of all conversations, so that startup need not read each. A cache; it never rejects. */
export interface SummaryCache {
  /** Returns the summaries that were stored when the storage was opened. Call it once, first. */
  read(): Promise<NotedSummaries>
  /**
   * Starts a summary of this conversation: it is valid while the log is unchanged since this call. Nobody may write the
   * log between this call and the moment that the summary describes. Written soon afterwards.
   */
  noteFor(id: string): (summary: Summary) => void
  /** Resolves when nothing of the conversation is left. */
  forget(id: string): Promise<void>
  /** Call it after startup: forgets conversations that no longer exist, and frees their space. */
  tidy(isThere: (id: string) => boolean): Promise<void>
}

export interface NotedSummaries {
  /**
   * Returns, in the order of the ids, the summaries whose log is unchanged; undefined for each other. Call it only
   * while nobody writes the logs. Throws the reason of an aborted signal.
   */
  current(ids: readonly string[], signal: AbortSignal): Promise<(Summary | undefined)[]>
  /** Returns the last stored summary, whatever has happened to the log since; undefined if none is stored. */
  last(id: string): Summary | undefined
}

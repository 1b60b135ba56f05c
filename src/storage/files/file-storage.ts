/**
 * The storage of one server: files in its data directory. It defines the directory's layout; each part knows its own
 * files.
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import type { EventStore, LogView, LogViews } from '../../events/event-store.ts'
import type { FirehoseOrderStore } from '../../events/firehose/firehose-order.ts'
import { createJsonlStore } from './log/jsonl-store.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import type { KeyMaterial } from '../../security/sealer.ts'
import type { Availability } from '../availability.ts'
import type { CredentialTable, ConversationStorage, DataKeys, Marks, SharedWorkdirs, Storage } from '../storage.ts'
import { openDataKeys } from './data-keys.ts'
import type { DataLock } from './directory/data-lock.ts'
import { requireNoDatabase } from './database-mark.ts'
import { lockDataDirectory } from './directory/data-lock.ts'
import type { FileParts } from './file-conversation.ts'
import { FileConversation } from './file-conversation.ts'
import { FirehoseFile } from './firehose/firehose-file.ts'
import { FileSummaries } from './file-summaries.ts'
import { removeLeftFiles } from './left-files.ts'
import { MarkFiles, exists, listIds } from './directory/mark-files.ts'
import { SecretFiles } from './secret-files.ts'
import { SearchFile } from './search/search-file.ts'
import { SnapshotFiles } from './snapshot-files.ts'
import { CredentialRows } from './tables/credential-rows.ts'
import { DeletionRows } from './tables/deletion-rows.ts'
import type { OnSetAside } from './tables/open-tables.ts'
import { openTables } from './tables/open-tables.ts'
import { SharedWorkdirRows } from './tables/shared-workdir-rows.ts'
import type { Tables } from './tables/tables.ts'
import { UsageFile } from './tables/usage-file.ts'

export type FileStorageOptions = {
  /** The data directory. Created if it does not exist. */
  readonly directory: string
  /** Called with errors that prevent caches from being written: the next start then takes longer. */
  readonly onFault: (error: unknown) => void
  readonly onSetAside?: OnSetAside
}

/** Locks the data directory until disposed. Throws a `DataDirectoryError`. */
export async function openFileStorage(
  options: FileStorageOptions & { readonly operatorKeys: KeyMaterial },
): Promise<Storage> {
  const lock = await lockDataDirectory(options.directory)
  try {
    await requireNoDatabase(options.directory)
    await removeLeftFiles(options.directory)
    const keys = await openDataKeys(options.directory, options.operatorKeys)
    return await FileStorage.openUnlocked({ ...options, keys, lock })
  } catch (error) {
    await lock[Symbol.asyncDispose]()
    throw error
  }
}

type Parts = FileStorageOptions & {
  readonly keys: DataKeys
  readonly lock?: DataLock
  readonly logs?: EventStore & LogViews
}

/** No other process serves files, or can take them over. */
const AVAILABILITY: Availability = { takenOver: new AbortController().signal, answers: () => true }

/** Its format is not read, so that a test need not write it. */
const UNLOCKED = { format: undefined, raiseFormat: () => Promise.resolve() }

export class FileStorage implements Storage {
  readonly keys: DataKeys
  readonly directory: string
  readonly availability = AVAILABILITY
  readonly active: Marks
  readonly due: Marks
  readonly deletions: DeletionRows
  readonly sharedWorkdirs: SharedWorkdirs
  readonly apiKeys: CredentialTable
  readonly logins: CredentialTable
  readonly profiles: CredentialTable
  readonly firehose: FirehoseOrderStore
  readonly summaries: FileSummaries
  readonly snapshots: SnapshotFiles
  readonly usage: UsageFile
  readonly search: SearchFile
  readonly #parts: FileParts
  readonly #views: LogViews
  readonly #lock: DataLock | undefined
  readonly #tables: Tables

  /** Opens a directory that is already locked or that nothing else uses. Creates the directories in it. */
  static async openUnlocked(parts: Parts): Promise<FileStorage> {
    await makeDirectories(parts.directory, 0o700)
    // Use the real path: shells know it by this name, even if they cannot see a link that points to it.
    const directory = await realpath(parts.directory)
    const names = ['sessions', 'active', 'due', 'deletions']
    await Promise.all(names.map((name) => makeDirectories(join(directory, name), 0o700)))
    await syncDirectory(directory)
    return new FileStorage(directory, await openTables(directory, parts.lock ?? UNLOCKED, parts.onSetAside), parts)
  }

  private constructor(root: string, tables: Tables, { keys, lock, onFault, logs }: Parts) {
    const directory = join(root, 'sessions')
    const store = logs ?? createJsonlStore({ directory })
    this.keys = keys
    this.directory = directory
    this.active = new MarkFiles(join(root, 'active'))
    this.due = new MarkFiles(join(root, 'due'))
    this.deletions = new DeletionRows(tables, join(root, 'deletions'))
    this.sharedWorkdirs = new SharedWorkdirRows(tables, (id) => exists(join(directory, id)))
    this.apiKeys = new CredentialRows(tables, 'api_keys')
    this.logins = new CredentialRows(tables, 'logins')
    this.profiles = new CredentialRows(tables, 'profiles')
    this.firehose = { open: () => FirehoseFile.open(join(root, 'firehose')) }
    this.summaries = new FileSummaries({ path: join(root, 'summaries.db'), logs: directory, onFault })
    this.snapshots = new SnapshotFiles(directory)
    this.usage = new UsageFile({ path: join(root, 'usage.db'), onFault })
    this.search = new SearchFile(join(root, 'search.db'))
    this.#parts = {
      directory,
      logs: store,
      snapshots: this.snapshots,
      secrets: new SecretFiles(directory, keys.material),
      requireHeld: async () => await lock?.requireHeld(),
    }
    this.#views = store
    this.#lock = lock
    this.#tables = tables
  }

  ids(): Promise<string[]> {
    return listIds(this.directory)
  }

  conversation(id: string): ConversationStorage {
    return new FileConversation(this.#parts, id)
  }

  view(conversationId: string): Promise<LogView> {
    return this.#views.view(conversationId)
  }

  async settled(): Promise<void> {
    await this.deletions.settle()
    await Promise.all([
      this.snapshots.settled(),
      this.summaries.close(),
      this.usage.settled(),
      this.search.settled(),
      this.#tables.settled(),
    ])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.summaries.release()
    await this.usage.close()
    await this.search[Symbol.asyncDispose]()
    await this.#tables[Symbol.asyncDispose]()
    await this.#lock?.[Symbol.asyncDispose]()
  }
}

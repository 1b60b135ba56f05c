/**
 * The storage of one server in PostgreSQL. What commands and shells need as files stays in the data directory: outputs,
 * shell state, homes.
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogView } from '../../events/event-store.ts'
import { makeDirectories } from '../../files/make-directories.ts'
import type { KeyMaterial } from '../../security/sealer.ts'
import type { DataLock } from '../files/directory/data-lock.ts'
import { lockDataDirectory } from '../files/directory/data-lock.ts'
import { markDatabase, requireDatabase } from '../files/database-mark.ts'
import { removeLeftFiles } from '../files/left-files.ts'
import type { FirehoseOrderStore } from '../../events/firehose/firehose-order.ts'
import { FirehoseNews } from './firehose-news.ts'
import { FirehoseTable } from './firehose-table.ts'
import { FirehoseTrim } from './firehose-trim.ts'
import { FirehoseFile } from '../files/firehose/firehose-file.ts'
import type { Availability } from '../availability.ts'
import type { Instances, ReplayTable, SharedConversations, TicketTable } from '../instances.ts'
import type {
  CredentialTable,
  ConversationStorage,
  DataKeys,
  Deletions,
  Marks,
  SharedWorkdirs,
  Storage,
} from '../storage.ts'
import { CredentialsTable } from './credentials-table.ts'
import { SnapshotRows, SummaryRows } from './caches.ts'
import { PostgresDatabase } from './database.ts'
import { connectFirst } from './first-connection.ts'
import { openDatabaseKeys } from './database-data-keys.ts'
import type { Sharing } from './incarnation.ts'
import type { NotedIncarnation } from './former-incarnation.ts'
import { replaceNote } from './former-incarnation.ts'
import { InstanceRows } from './instance-rows.ts'
import { KeptIncarnation, beginIncarnation, lockDatabase } from './incarnation.ts'
import { DeletionsTable, MarksTable, SharedWorkdirsTable } from './marks-tables.ts'
import { RowOwnership } from './ownership.ts'
import type { PostgresParts } from './postgres-conversation.ts'
import { PostgresConversation } from './postgres-conversation.ts'
import { PostgresStore } from './postgres-store.ts'
import { migrate, readIdentity, requireIdentity, requireSameDatabase } from './schema.ts'
import { ReplayRows } from './replay-rows.ts'
import { SearchTables } from './search-tables.ts'
import { SecretRows } from './secret-rows.ts'
import { openSharedDirectory } from './shared-directory.ts'
import { SharedRows } from './shared-rows.ts'
import { TicketRows } from './ticket-rows.ts'
import { UsageRows } from './usage-rows.ts'
import type { PostgresSession } from './session.ts'

export type PostgresStorageOptions = {
  /** `postgresql://user:password@host:5432/name?sslmode=verify-full`, with several hosts separated by commas. */
  readonly url: string
  /** The same database without a pooler: see `DatabaseOptions`. */
  readonly sessionUrl?: string | undefined
  /** The local data directory. Created if it does not exist. */
  readonly directory: string
  /** Replaces it for the files of conversations that other instances need, too. */
  readonly sharedDirectory?: string | undefined
  readonly operatorKeys: KeyMaterial
  readonly serverVersion: string
  /** How long an outage of the database delays statements before they fail, in milliseconds. */
  readonly outageMs?: number
  /** How often the lock of the database is renewed and the counter raised, in milliseconds. */
  readonly renewMs?: number
  /** Whether other instances may use the database at the same time; `alone` by default. */
  readonly sharing?: Sharing
  /** The time for which a counter must be unchanged until its instance is dead, in milliseconds. */
  readonly ttlMs?: number
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
  /** Called with what an operator should change. */
  readonly onWarning?: (warning: string) => void
  readonly metrics?: StorageMetrics
  /** Called once if the database has not started, with the reason. Then the start waits for as long as statements do. */
  readonly onAway?: (error: unknown) => void
  /** Called with errors that prevent caches from being written or the lock from being kept. */
  readonly onFault: (error: unknown) => void
}

/** Called by the code that does the work. Must not throw. */
type StorageMetrics = {
  readonly databaseAnswered: (kind: string, ms: number) => void
  readonly fenced: () => void
  readonly suspended: () => void
}

const OUTAGE_MS = 30_000
const RENEW_MS = 3000
const TTL_MS = 10_000

/** Locks the data directory and the database until disposed. Throws a `DataDirectoryError` or a `DatabaseError`. */
export async function openPostgresStorage(options: PostgresStorageOptions): Promise<Storage> {
  await using openedParts = new AsyncDisposableStack()
  const lock = openedParts.use(await lockDataDirectory(options.directory))
  const { url, sessionUrl, outageMs = OUTAGE_MS, sharing = 'alone', metrics } = options
  const onAnswered = metrics?.databaseAnswered
  const database = openedParts.use(new PostgresDatabase({ url, sessionUrl, outageMs, onAnswered }))
  const session = await connectFirst(database, options.onAway)
  openedParts.defer(() => session.end())
  await lockDatabase(session, sharing)
  // This precedes each write: it may be the wrong database.
  await requireDatabase(options.directory, await readIdentity(session))
  await migrate(session)
  const warning = await warningOfStandbys(session)
  if (warning !== undefined) options.onWarning?.(warning)
  const keys = await openDatabaseKeys(session, options.operatorKeys)
  const identity = await requireIdentity(session)
  if (sessionUrl !== undefined) await requireSameDatabase(database, identity)
  const sharedDirectory = options.sharedDirectory
  const sessions = sharedDirectory === undefined ? undefined : await openSharedDirectory(sharedDirectory, identity)
  await markDatabase(options.directory, identity)
  await removeLeftFiles(options.directory)
  const { renewMs = RENEW_MS, ttlMs = TTL_MS, now = () => performance.now(), onFault } = options
  const beganAt = now()
  const own = await beginIncarnation(session, options.serverVersion, sharing)
  const former = await replaceNote(options.directory, lock, own)
  const owner = own.id
  const keptParts = { database, session, number: owner, sharing, outageMs, renewMs, ttlMs, beganAt, now, onFault }
  const incarnation = openedParts.use(new KeptIncarnation({ ...keptParts, onSuspended: metrics?.suspended }))
  if (sharing === 'shared') openedParts.use(new FirehoseTrim(database))
  const news = sharing === 'shared' ? openedParts.use(new FirehoseNews(database)) : undefined
  const directory = await realpath(options.directory)
  await makeDirectories(join(directory, 'sessions'), 0o700)
  return new PostgresStorage(
    { ...options, directory, sessions, database, keys, lock, owner, former, incarnation, news },
    openedParts.move(),
  )
}

type Parts = Pick<PostgresStorageOptions, 'directory' | 'onFault' | 'metrics'> & {
  /** Has the directories of conversations, if they are not local. */
  readonly sessions: string | undefined
  readonly database: PostgresDatabase
  readonly keys: DataKeys
  readonly lock: DataLock
  readonly owner: number
  readonly former: NotedIncarnation | undefined
  readonly incarnation: KeptIncarnation
  /** Undefined for an instance that is alone. */
  readonly news: FirehoseNews | undefined
}

class PostgresStorage implements Storage {
  readonly keys: DataKeys
  readonly directory: string
  readonly availability: Availability
  readonly instances: Instances
  readonly shared: SharedConversations | undefined
  readonly tickets: TicketTable | undefined
  readonly replays: ReplayTable
  readonly sharesFiles: boolean
  readonly active: Marks
  readonly due: Marks
  readonly deletions: Deletions
  readonly sharedWorkdirs: SharedWorkdirs
  readonly apiKeys: CredentialTable
  readonly logins: CredentialTable
  readonly profiles: CredentialTable
  readonly firehose: FirehoseOrderStore
  readonly summaries: SummaryRows
  readonly snapshots: SnapshotRows
  readonly usage: UsageRows
  readonly search: SearchTables
  readonly #parts: PostgresParts
  readonly #opened: AsyncDisposableStack

  constructor(
    { directory: root, sessions, onFault, metrics, database, keys, lock, owner, former, incarnation, news }: Parts,
    openedParts: AsyncDisposableStack,
  ) {
    this.keys = keys
    this.directory = join(root, 'sessions')
    this.availability = incarnation
    const ownership = new RowOwnership(database, owner)
    this.instances = new InstanceRows(ownership, former, incarnation)
    this.shared = news && new SharedRows(ownership)
    this.tickets = news && new TicketRows(database)
    this.replays = new ReplayRows(ownership)
    this.sharesFiles = sessions !== undefined
    this.active = new MarksTable(ownership, 'active')
    this.due = new MarksTable(ownership, 'due')
    this.deletions = new DeletionsTable(ownership, news && (() => news.announce()))
    this.sharedWorkdirs = new SharedWorkdirsTable(database)
    this.apiKeys = new CredentialsTable(database, 'api_keys', 'api_key_version')
    this.logins = new CredentialsTable(database, 'logins', 'login_version')
    this.profiles = new CredentialsTable(database, 'profiles', 'profile_version')
    const logs = new PostgresStore({ ownership, onStored: news && (() => news.announce()), onFenced: metrics?.fenced })
    this.firehose = news
      ? { open: (onNews, whenSynced) => openFirehoseTable({ database, logs, news, whenSynced }, onNews) }
      : { open: () => FirehoseFile.open(join(root, 'firehose')) }
    this.summaries = new SummaryRows(database, onFault)
    this.snapshots = new SnapshotRows(ownership)
    this.usage = new UsageRows(database)
    this.search = new SearchTables(database)
    this.#parts = {
      ownership,
      directory: sessions ?? this.directory,
      localDirectory: sessions === undefined ? undefined : this.directory,
      logs,
      snapshots: this.snapshots,
      secrets: new SecretRows(ownership, keys.material),
      requireHeld: () => lock.requireHeld(),
    }
    this.#opened = openedParts
  }

  async ids(): Promise<string[]> {
    const { database, incarnation } = this.#parts.ownership
    return (await database.read(IDS, [incarnation])).map(({ id }) => String(id))
  }

  conversation(id: string): ConversationStorage {
    return new PostgresConversation(this.#parts, id)
  }

  view(conversationId: string): Promise<LogView> {
    return this.#parts.logs.view(conversationId)
  }

  async settled(): Promise<void> {
    await Promise.all([this.snapshots.settled(), this.summaries.settled()])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync()
  }
}

const IDS = `
  select id from conversations where has_log or owner is null or owner = $1 or has_ended(owner)`

type FirehoseParts = Pick<Parts, 'database'> & {
  readonly logs: PostgresStore
  readonly news: FirehoseNews
  readonly whenSynced: (() => Promise<void>) | undefined
}

async function openFirehoseTable(
  { database, logs, news, whenSynced }: FirehoseParts,
  onNews: () => void,
): Promise<FirehoseTable> {
  const views = { view: (id: string) => logs.viewRow(id) }
  const stopListening = news.listen(onNews)
  try {
    return await FirehoseTable.open({ database, logs: views, stopListening, whenSynced })
  } catch (error) {
    await stopListening()
    throw error
  }
}

const STATEMENT_MS = 10_000

/**
 * Returns a warning if the database has standbys, and none of them is synchronous; undefined otherwise, also if this user
 * cannot see that.
 */
async function warningOfStandbys(session: PostgresSession): Promise<string | undefined> {
  const [row] = await session.run(ARE_ASYNCHRONOUS, [], STATEMENT_MS)
  if (row?.['are_asynchronous'] !== true) return undefined
  return 'no standby of the database is synchronous: a failover can lose events that were acknowledged; set synchronous_standby_names'
}

// The state of a standby is null for users without the role pg_monitor.
const ARE_ASYNCHRONOUS = `
  select bool_and(sync_state is not null and sync_state not in ('sync', 'quorum')) as are_asynchronous
  from pg_stat_replication`

/**
 * Copies the conversations of a data directory into an empty database. The files stay as they are: until the mark is written,
 * last, they count, and an import that was interrupted at any moment continues where it was.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { readSealedKeys } from '../files/data-keys.ts'
import { hasFiles, markDatabase, readDatabaseMark } from '../files/database-mark.ts'
import { lockDataDirectory } from '../files/directory/data-lock.ts'
import { listIds } from '../files/directory/mark-files.ts'
import { logPathIn } from '../files/log/jsonl-store.ts'
import { openTables } from '../files/tables/open-tables.ts'
import type { EventRow } from '../postgres/append-lanes.ts'
import type { PostgresDatabase } from '../postgres/database.ts'
import { requireIdentity } from '../postgres/schema.ts'
import { writeEvents } from '../postgres/write-events.ts'
import { importDocuments } from './conversation-documents.ts'
import type { LogDigest } from './event-digest.ts'
import { EventDigest, digestOfRows, isSame } from './event-digest.ts'
import { readLogLines } from './log-lines.ts'
import { openNewDatabase } from './locked-database.ts'
import { importApiKeys, importDeletions, importProfiles, importWorkdirsAndMarks } from './small-tables.ts'
import { TransferError, refuseFaults } from './transfer-error.ts'

export type Transfer = {
  /** The URL of the database. */
  readonly url: string
  /** The data directory. */
  readonly directory: string
}

/** What was copied and compared. */
export type TransferCounts = { readonly conversations: number; readonly events: number }

/**
 * Resolves when the database has everything and the directory is marked as its own. Throws a `TransferError`, a
 * `DataDirectoryError` or a `DatabaseError`; then the directory is used as before.
 */
export async function importDirectory({ url, directory }: Transfer): Promise<TransferCounts> {
  if (!hasFiles(directory)) throw new TransferError(`${directory} has no data of a server. Name its data directory.`)
  await using openedParts = new AsyncDisposableStack()
  const lock = openedParts.use(await lockDataDirectory(directory))
  const { database, session, requireLock } = openedParts.use(await openNewDatabase(url))
  const identity = await requireIdentity(session)
  await refuseMarked(directory, identity)
  const tables = openedParts.use(await openTables(directory, lock))
  await importDataKeys(database, directory)
  const deletedIds = await importDeletions(database, tables, directory)
  const sessions = join(directory, 'sessions')
  const ids = (await listIds(sessions)).filter((id) => !deletedIds.has(id))
  const digests = new Map<string, LogDigest>()
  const faults: string[] = []
  for (const id of ids) {
    await requireLock()
    const digest = await importConversation(database, sessions, id).catch(faultOf)
    if (typeof digest === 'string') faults.push(`conversation ${id} ${digest}`)
    else if (digest) digests.set(id, digest)
  }
  faults.push(...(await removeOthers(database, digests, deletedIds)))
  if (!(await importApiKeys(database, tables))) faults.push('the database has other API keys')
  await importProfiles(database, tables)
  await importWorkdirsAndMarks(database, tables, directory)
  faults.push(...(await compare(database, digests)))
  refuseFaults(
    faults,
    'Nothing was changed in the directory. Repair or delete what is damaged and import again; into another, empty database if this one has something else.',
  )
  await requireLock()
  await markDatabase(directory, identity)
  return totalOf(digests)
}

export const totalOf = (digests: ReadonlyMap<string, LogDigest>): TransferCounts => ({
  conversations: digests.size,
  events: Array.from(digests.values()).reduce((sum, { count }) => sum + count, 0),
})

/** Returns what is wrong with one conversation; the others are copied nevertheless. Throws anything else. */
export function faultOf(error: unknown): string {
  if (error instanceof TransferError || (error instanceof Problem && error.code === 'conversation_damaged'))
    return `cannot be copied: ${error.message.replace(/\.$/, '')}`
  throw error
}

async function refuseMarked(directory: string, identity: string): Promise<void> {
  const mark = await readDatabaseMark(directory)
  if (mark === undefined) return
  throw new TransferError(
    mark === identity
      ? `${directory} was imported into this database already. Start the server with OPENHANDS_DATABASE_URL.`
      : `The conversations of ${directory} are in another database. Export them from there first.`,
  )
}

/** They are encrypted with the key of the operator, and stay so. */
async function importDataKeys(database: PostgresDatabase, directory: string): Promise<void> {
  const sealedKeys = await readSealedKeys(directory)
  await database.write(DATA_KEYS, [sealedKeys])
  const rows = await database.read('select sealed from data_keys order by number')
  if (rows.map((row) => String(row['sealed'])).join() !== sealedKeys.join())
    throw new TransferError('The database has data of another directory. Import into an empty one.')
}

/** Returns the digest of its file; undefined for the remains of an interrupted create. */
async function importConversation(
  database: PostgresDatabase,
  sessions: string,
  id: string,
): Promise<LogDigest | undefined> {
  const directory = join(sessions, id)
  const digest = new EventDigest()
  let head: number | undefined
  let last: EventRow | undefined
  async function* missing(): AsyncGenerator<EventRow, void, void> {
    for await (const event of readLogLines(logPathIn(sessions, id))) {
      head ??= await begin(database, id, directory)
      digest.add(event.json)
      last = event
      if (event.seq > head) yield event
    }
  }
  await writeEvents((columns) => database.write(INSERT, [id, ...columns], 'cache'), missing())
  if (head === undefined || !last) return undefined
  if (head > digest.value.count)
    throw new TransferError(`the database has ${head} events of it, and the file ${digest.value.count}`)
  const different = await importDocuments(database, id, directory)
  if (different.length > 0) throw new TransferError(`the database has other values of ${different.join(', ')}`)
  await database.write(FINISH, [id, last.seq, last.at], 'cache')
  return digest.value
}

/** Returns the seq of the last event that is there. */
async function begin(database: PostgresDatabase, id: string, directory: string): Promise<number> {
  await database.write(BEGIN, [id, (await stat(directory)).birthtime], 'cache')
  const [row] = await database.read('select coalesce(max(seq), 0) as head from events where conversation_id = $1', [id])
  return Number(row?.['head'])
}

/** Removes what was deleted after an interrupted import. Returns what the directory never had. */
async function removeOthers(
  database: PostgresDatabase,
  knownRows: ReadonlyMap<string, unknown>,
  deletedIds: ReadonlySet<string>,
): Promise<string[]> {
  const rows = await database.read('select id from conversations')
  const others = rows.map(({ id }) => String(id)).filter((id) => !knownRows.has(id))
  for (const id of others) if (deletedIds.has(id)) await database.write('select remove_conversation($1)', [id])
  return others.flatMap((id) => (deletedIds.has(id) ? [] : `the database has a conversation ${id} that was not copied`))
}

async function compare(database: PostgresDatabase, digests: ReadonlyMap<string, LogDigest>): Promise<string[]> {
  const rows = await database.read('select id, head from conversations where has_log')
  const heads = new Map(rows.map(({ id, head }) => [String(id), Number(head)]))
  const faults: string[] = []
  for (const [id, digest] of digests)
    if (heads.get(id) !== digest.count || !isSame(digest, await digestOfRows(database, id)))
      faults.push(`conversation ${id} is different in the database`)
  return faults
}

const DATA_KEYS = `
  insert into data_keys (number, sealed)
  select n, s from unnest($1::text[]) with ordinality k(s, n) where not exists (select from data_keys)`
const BEGIN = 'insert into conversations (id, created_at) values ($1, $2) on conflict do nothing'
const FINISH = `
  with before as materialized (
    select head from conversations where id = $1
  ), finished as (
    update conversations set has_log = true, head = $2, last_at = $3, epoch = nextval('epochs')
    where id = $1 and (not has_log or head < $2)
    returning id
  )
  select add_to_firehose(id, (select head from before) + 1, $2) from finished`

// What is there already is not changed.
const INSERT = `
  insert into events (conversation_id, seq, at, type, source, json)
  select $1, e.* from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[]) e
  on conflict do nothing`

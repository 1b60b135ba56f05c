/**
 * Copies the conversations of a database into files of a data directory. The directory is marked as that of the database
 * until everything is there and compared: an export that was interrupted at any moment starts no server on half of it, and
 * continues.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { replaceFile, syncDirectory } from '../../lib/durable-file.ts'
import { writeSealedKeys } from '../files/data-keys.ts'
import { hasFiles, markDatabase, readDatabaseMark, unmarkDatabase } from '../files/database-mark.ts'
import { lockDataDirectory } from '../files/directory/data-lock.ts'
import { listIds } from '../files/directory/mark-files.ts'
import { textOfWrite } from '../files/log/event-line.ts'
import { logPathIn } from '../files/log/jsonl-store.ts'
import type { PostgresDatabase } from '../postgres/database.ts'
import { readRows } from '../postgres/read-events.ts'
import { requireIdentity } from '../postgres/schema.ts'
import { exportDocuments } from './conversation-documents.ts'
import type { LogDigest } from './event-digest.ts'
import { EventDigest, digestOfRows, isSame } from './event-digest.ts'
import type { Transfer, TransferCounts } from './import-directory.ts'
import { faultOf, totalOf } from './import-directory.ts'
import { digestOfFile } from './log-lines.ts'
import { openUsedDatabase } from './locked-database.ts'
import { exportTables, hasConversations } from './small-tables.ts'
import { TransferError, refuseFaults } from './transfer-error.ts'

/** Events of one read, and their bytes: what is in memory. */
const READ = { limit: 500, maxBytes: 4 * 1024 * 1024 }

/** What the directory had before the import. A start makes the caches again. */
const STALE = [
  'tables.db',
  'tables.db-journal',
  'summaries.db',
  'usage.db',
  'usage.db-journal',
  'active',
  'due',
  'deletions',
]

/**
 * Resolves when a server without a database can start on the directory. Throws as `importDirectory` does; then the directory
 * is still that of the database, which is never changed.
 */
export async function exportDirectory({ url, directory }: Transfer): Promise<TransferCounts> {
  await using openedParts = new AsyncDisposableStack()
  const lock = openedParts.use(await lockDataDirectory(directory))
  const isImported = async (identity: string | undefined) =>
    identity !== undefined && (await readDatabaseMark(directory)) === identity
  const { database, session, requireLock } = openedParts.use(await openUsedDatabase(url, isImported))
  await takeDirectory(directory, await requireIdentity(session))
  const sessions = join(directory, 'sessions')
  await makeDirectories(sessions, 0o700)
  const digests = new Map<string, LogDigest>()
  const faults: string[] = []
  const ids = await idsIn(database, 'select id from conversations where has_log and head > 0')
  for (const id of ids) {
    await requireLock()
    const digest = await exportConversation(database, sessions, id).catch(faultOf)
    if (typeof digest === 'string') faults.push(`conversation ${id} ${digest}`)
    else digests.set(id, digest)
  }
  await syncDirectory(sessions)
  const deletedIds = await idsIn(database, 'select conversation_id as id from deletions')
  faults.push(...(await unknownLogs(sessions, new Set([...ids, ...deletedIds]))))
  for (const name of STALE) await rm(join(directory, name), { force: true, recursive: true })
  await exportTables(database, directory)
  const keys = await database.read('select sealed from data_keys order by number')
  await writeSealedKeys(
    directory,
    keys.map(({ sealed }) => String(sealed)),
  )
  faults.push(...(await compare(sessions, digests)))
  refuseFaults(faults, 'The directory is still that of the database. Move what is different away and export again.')
  await requireLock()
  await lock.raiseFormat()
  await unmarkDatabase(directory)
  return totalOf(digests)
}

/** It is the data directory of a server on this database, one of an interrupted export, or an empty one. */
async function takeDirectory(directory: string, identity: string): Promise<void> {
  const mark = await readDatabaseMark(directory)
  if (mark === identity) return
  if (mark !== undefined)
    throw new TransferError(`${directory} belongs to another database. Export to an empty directory.`)
  if (hasFiles(directory) || (await hasConversations(directory)))
    throw new TransferError(`${directory} has conversations in files. Export to an empty directory.`)
  await markDatabase(directory, identity)
}

async function idsIn(database: PostgresDatabase, text: string): Promise<string[]> {
  return (await database.read(text)).map(({ id }) => String(id))
}

/** A log that is there is replaced by a longer one, never by another one. */
async function exportConversation(database: PostgresDatabase, sessions: string, id: string): Promise<LogDigest> {
  const [directory, path] = [join(sessions, id), logPathIn(sessions, id)]
  await makeDirectories(directory, 0o700)
  const storedDigest = await digestOfRows(database, id)
  const foundDigest = await digestOfFile(path)
  if (foundDigest.count > storedDigest.count) throw different(foundDigest, storedDigest)
  if (!isSame(foundDigest, storedDigest))
    await replaceFile(path, linesOf(database, id, { foundDigest, stored: storedDigest }), { draft: `${path}.new` })
  await rm(join(directory, 'meta.json'), { force: true })
  await exportDocuments(database, id, directory)
  return storedDigest
}

async function* linesOf(
  database: PostgresDatabase,
  id: string,
  { foundDigest, stored }: { readonly foundDigest: LogDigest; readonly stored: LogDigest },
): AsyncGenerator<string, void, void> {
  const digest = new EventDigest()
  for (let last = 0; last < stored.count;) {
    const range = { first: last + 1, last: stored.count }
    const { events } = await readRows({ database, id, head: stored.count }, range, { order: 'asc', ...READ })
    if (events.length === 0) return
    for (const { seq, json } of events) {
      last = Number(seq)
      digest.add(String(json))
      if (last === foundDigest.count && !isSame(digest.value, foundDigest)) throw different(foundDigest, stored)
    }
    yield events.map(({ json }) => textOfWrite([String(json)])).join('')
  }
}

const different = (foundDigest: LogDigest, storedDigest: LogDigest): TransferError =>
  new TransferError(
    `its file has ${foundDigest.count} events that are not the first of the ${storedDigest.count} in the database`,
  )

/** Returns the logs of conversations that the database never had: a start would show them. */
async function unknownLogs(sessions: string, knownIds: ReadonlySet<string>): Promise<string[]> {
  const faults: string[] = []
  for (const id of await listIds(sessions)) {
    if (knownIds.has(id)) continue
    const { count } = await digestOfFile(logPathIn(sessions, id)).catch(() => ({ count: NaN }))
    if (count !== 0) faults.push(`conversation ${id} has a file and is not in the database`)
  }
  return faults
}

async function compare(sessions: string, digests: ReadonlyMap<string, LogDigest>): Promise<string[]> {
  const faults: string[] = []
  for (const [id, digest] of digests)
    if (!isSame(digest, await digestOfFile(logPathIn(sessions, id))))
      faults.push(`the file of conversation ${id} is different`)
  return faults
}

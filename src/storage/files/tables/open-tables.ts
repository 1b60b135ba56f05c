/**
 * Opens the tables of a data directory. Makes them where there are none yet: from the files of earlier versions, which are
 * kept aside in `before-format-3`.
 *
 * A crash at any step loses nothing. The tables come into being by one rename; as long as the directory has its former
 * format, its files count and the tables are made again, because an earlier version may have changed the files.
 */
import { existsSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../../../lib/durable-file.ts'
import { ignoring } from '../../../lib/error-code.ts'
import type { DataLock } from '../directory/data-lock.ts'
import { DataDirectoryError } from '../directory/data-lock.ts'
import type { Database } from '../directory/sqlite.ts'
import { isDamaged, loadSqlite } from '../directory/sqlite.ts'
import { CREDENTIAL_COLUMNS } from './credential-rows.ts'
import { EARLIER, readEarlierFiles } from './earlier-files.ts'
import { BUSY_MS, Tables, urlOf } from './tables.ts'

const FILE = 'tables.db'
/** The first format of the data directory that has tables. */
const SINCE_FORMAT = 3
const ASIDE = 'before-format-3'

const SCHEMA = `
  CREATE TABLE versions (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
  INSERT INTO versions VALUES ('api_keys', 1);
  CREATE TABLE api_keys ${CREDENTIAL_COLUMNS};
  CREATE TABLE deletions (id TEXT PRIMARY KEY, key TEXT, body_hash TEXT, at TEXT) STRICT, WITHOUT ROWID;
  CREATE INDEX deletion_keys ON deletions (at) WHERE at IS NOT NULL;
  CREATE TABLE shared_workdirs (workdir TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (workdir, id)) STRICT, WITHOUT ROWID;`

type Format = Pick<DataLock, 'format' | 'raiseFormat'>

/** Called with the new paths of files of an earlier version that were found next to tables, and were not read. */
export type OnSetAside = (paths: readonly string[]) => void

/** Raises the format of the directory. Throws a `DataDirectoryError` if the tables are damaged, or missing. */
export async function openTables(
  directory: string,
  { format, raiseFormat }: Format,
  onSetAside?: OnSetAside,
): Promise<Tables> {
  const path = join(directory, FILE)
  const isThere = existsSync(path)
  if (isThere && (format ?? SINCE_FORMAT) >= SINCE_FORMAT) check(path)
  else if (format === undefined || format < SINCE_FORMAT) await makeTables(directory, path)
  else throw new DataDirectoryError(`${path} is missing. ${ADVICE}`)
  await raiseFormat()
  const aside = await setAsideEarlierFiles(directory)
  if (aside.length > 0 && (format ?? 0) >= SINCE_FORMAT) onSetAside?.(aside)
  return new Tables(path)
}

const ADVICE =
  'It has the API keys, the deleted conversations and the shared workdirs. Restore the data directory from a backup.'

function check(path: string): void {
  let tables: Database | undefined
  try {
    tables = new (loadSqlite().DatabaseSync)(new URL(urlOf(path)), { timeout: BUSY_MS })
    const checkResult = tables.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (checkResult !== 'ok') throw new Error(String(checkResult).replaceAll('\n', ' '))
    // An empty file is a database without tables.
    for (const name of ['versions', 'api_keys', 'deletions', 'shared_workdirs'])
      tables.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get()
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const is = isDamaged(cause) || tables ? 'is damaged' : 'cannot be opened'
    throw new DataDirectoryError(`${path} ${is} (${why}). ${ADVICE}`, { cause })
  } finally {
    tables?.close()
  }
}

/** Made under another name and renamed when it is durable: SQLite itself syncs nothing. */
async function makeTables(directory: string, path: string): Promise<void> {
  const draft = `${path}.new`
  await rm(draft, { force: true })
  const file = await open(draft, 'wx', 0o600)
  try {
    await fill(draft, directory)
    await file.datasync()
  } finally {
    await file.close()
  }
  // The journal of tables that do not count would be applied to the new ones.
  await rm(`${path}-journal`, { force: true })
  await rename(draft, path)
  await syncDirectory(directory)
}

async function fill(draft: string, directory: string): Promise<void> {
  const earlier = await readEarlierFiles(directory)
  const tables = new (loadSqlite().DatabaseSync)(draft)
  try {
    tables.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN; ${SCHEMA}`)
    const [key, deletion, workdir] = [
      tables.prepare('INSERT INTO api_keys (id, value, used_at) VALUES (?, ?, ?)'),
      tables.prepare('INSERT INTO deletions VALUES (?, ?, ?, ?)'),
      tables.prepare('INSERT INTO shared_workdirs VALUES (?, ?)'),
    ]
    for (const { id, value, usedAt } of earlier.apiKeys) key.run(id, JSON.stringify(value), usedAt ?? null)
    for (const { id, key: of } of earlier.deletions)
      deletion.run(id, of?.key ?? null, of?.bodyHash ?? null, of?.at ?? null)
    for (const { hash, id } of earlier.sharedWorkdirs) workdir.run(hash, id)
    tables.exec('COMMIT')
  } finally {
    tables.close()
  }
}

/**
 * They count no more. A crash may have left some of them in their place, or somebody has put them back: what was set aside
 * before is kept next to them. Returns their new paths.
 */
async function setAsideEarlierFiles(directory: string): Promise<string[]> {
  const earlierNames = EARLIER.filter((name) => existsSync(join(directory, name)))
  if (earlierNames.length === 0) return []
  const aside = join(directory, ASIDE)
  await mkdir(aside, { mode: 0o700 }).catch(ignoring('EEXIST'))
  const movedFiles = earlierNames.map((name) => ({ name, path: freePath(join(aside, name)) }))
  for (const { name, path } of movedFiles) await rename(join(directory, name), path)
  await syncDirectory(directory)
  return movedFiles.map(({ path }) => path)
}

function freePath(path: string): string {
  for (let number = 1; ; number++) {
    const free = number === 1 ? path : `${path}.${number}`
    if (!existsSync(free)) return free
  }
}

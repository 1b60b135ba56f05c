/**
 * Notes which database has the conversations of a data directory. A start with another one, or without it, would show
 * other conversations, and new ones would be in two places.
 */
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile, syncDirectory } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import { DataDirectoryError } from './directory/data-lock.ts'

const pathIn = (directory: string): string => join(directory, 'database')

/** Throws a `DataDirectoryError` if the conversations of the directory are in a database. */
export async function requireNoDatabase(directory: string): Promise<void> {
  if ((await readDatabaseMark(directory)) === undefined) return
  throw new DataDirectoryError(
    `The conversations of ${directory} are in a PostgreSQL database. Set OPENHANDS_DATABASE_URL to it, or use another data directory.`,
  )
}

/** `id`: the identity of the database; undefined if it has none yet. Throws a `DataDirectoryError` if another one is meant. */
export async function requireDatabase(directory: string, id: string | undefined): Promise<void> {
  const markText = await readDatabaseMark(directory)
  if (markText !== undefined && markText !== id)
    throw new DataDirectoryError(
      `${directory} belongs to another database than that of OPENHANDS_DATABASE_URL. Set the URL of the former one, or use an empty data directory.`,
    )
  if (markText === undefined && hasFiles(directory))
    throw new DataDirectoryError(
      `${directory} was used without a database, and its conversations are in files. Start without OPENHANDS_DATABASE_URL, run agent-server import --from ${directory}, or use an empty data directory.`,
    )
}

/** Notes, durably, that this database has the conversations of the directory. */
export async function markDatabase(directory: string, id: string): Promise<void> {
  if ((await readDatabaseMark(directory)) === id) return
  const path = pathIn(directory)
  await replaceFile(path, `${id}\n`, { draft: `${path}.new` })
}

/** Makes it durable that the conversations of the directory are in its files from now on. */
export async function unmarkDatabase(directory: string): Promise<void> {
  await rm(pathIn(directory), { force: true })
  await syncDirectory(directory)
}

/** Returns the identity of the database that has the conversations of the directory; undefined if they are in files. */
export async function readDatabaseMark(directory: string): Promise<string | undefined> {
  try {
    return (await readFile(pathIn(directory), 'utf8')).trim()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The first files that a storage in files makes. */
export const hasFiles = (directory: string): boolean =>
  ['data-keys', 'version', 'tables.db'].some((name) => existsSync(join(directory, name)))

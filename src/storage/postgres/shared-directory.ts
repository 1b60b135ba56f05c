/** The directory that all instances of a database share. A file in it names the database: another one is refused. */
import { randomUUID } from 'node:crypto'
import { link, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import { ignoreMissing, ignoring } from '../../lib/error-code.ts'
import { DatabaseError } from './database-errors.ts'

const MARKER = 'cluster'

/** Returns the real path of the directory of all conversations in it. Throws a `DatabaseError`. */
export async function openSharedDirectory(path: string, identity: string): Promise<string> {
  try {
    await makeDirectories(path, 0o700)
    const directory = await realpath(path)
    const markText = await mark(directory, identity)
    if (markText !== identity) throw ofAnother(path)
    const sessions = join(directory, 'sessions')
    await makeDirectories(sessions, 0o700)
    return sessions
  } catch (error) {
    if (error instanceof DatabaseError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new DatabaseError(`OPENHANDS_SHARED_DIR cannot be used: ${why}. Mount it, and let the server write there.`, {
      cause: error,
    })
  }
}

/** Returns the identity in the file, which this or another instance has written first. */
async function mark(directory: string, identity: string): Promise<string> {
  const path = join(directory, MARKER)
  const foundText = await readFile(path, 'utf8').catch(ignoreMissing)
  if (foundText !== undefined) return foundText.trim()
  const draft = `${path}.${randomUUID()}`
  await writeFile(draft, `${identity}\n`, { flush: true })
  // Atomic on a network file system, too: of two instances that start at the same time, one writes it.
  await link(draft, path).catch(ignoring('EEXIST'))
  await rm(draft)
  await syncDirectory(directory)
  return (await readFile(path, 'utf8')).trim()
}

const ofAnother = (path: string): DatabaseError =>
  new DatabaseError(
    `${path} belongs to the instances of another database than that of OPENHANDS_DATABASE_URL. Set OPENHANDS_SHARED_DIR to the directory of this one, or to an empty directory.`,
  )

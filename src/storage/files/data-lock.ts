/** Keeps a data directory to one server at a time, and to servers that know its format. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'

/** What this server writes into the data directory. Raised when an older server would misread it. */
export const DATA_FORMAT = 1

/** The data directory can't be used by this server; the message says why and what to do. */
export class DataDirectoryError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DataDirectoryError'
  }
}

/** Held until disposed of. Makes the directory if it isn't there. Throws a `DataDirectoryError`. */
export async function lockDataDirectory(directory: string): Promise<AsyncDisposable> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const release = await takeLock(directory)
  try {
    // Under the lock: two servers of different versions may start at once.
    await checkFormat(directory)
  } catch (error) {
    release()
    throw error
  }
  return {
    [Symbol.asyncDispose]: () => {
      release()
      return Promise.resolve()
    },
  }
}

/**
 * An exclusive transaction of SQLite is a lock of the kernel on a byte range of the file. It goes when its process does,
 * `kill -9` included, and holds between containers that share the directory, where the pids of a lock file mean nothing.
 * Nothing else in this process may open `lock.db`: closing any descriptor of a file drops all its POSIX locks.
 */
async function takeLock(directory: string): Promise<() => void> {
  // Loaded here, for whoever only imports this file has no use for SQLite.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(join(directory, 'lock.db'), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
    return () => database.close()
  } catch (cause) {
    database.close()
    if (!isBusy(cause)) throw new DataDirectoryError(`${directory} could not be locked: ${String(cause)}`, { cause })
    throw new DataDirectoryError(
      `${directory} is in use by another server. Stop that one, or give this one a data directory of its own.`,
      { cause },
    )
  }
}

const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

async function checkFormat(directory: string): Promise<void> {
  const path = join(directory, 'version')
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  // By rename: a half-written number would keep every later start from the data.
  if (text === undefined) return await replaceFile(path, `${DATA_FORMAT}\n`, { draft: `${path}.new` })
  const format = Number(text)
  if (!Number.isSafeInteger(format) || format < 1) {
    throw new DataDirectoryError(`${path} does not hold a version number. Restore it, or use another data directory.`)
  }
  if (format > DATA_FORMAT) {
    throw new DataDirectoryError(
      `${directory} was written by a newer version (format ${format}; this server knows ${DATA_FORMAT}). ` +
        'Start that version, or use another data directory.',
    )
  }
}

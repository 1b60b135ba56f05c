/** Restricts a data directory to one server at a time, and to servers that know its format. */
import { statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../../files/make-directories.ts'
import { Problem } from '../../../contract/problem.ts'
import { codeOf } from '../../../lib/error-code.ts'
import { replaceFile } from '../../../lib/durable-file.ts'
import { shareNext } from '../../../lib/lazily.ts'
import type { Database } from './sqlite.ts'
import { isBusy, isDamaged, loadSqlite } from './sqlite.ts'

/** The format version of the data directory. Raised when an older server would misread it. */
export const DATA_FORMAT = 3

/** The data directory cannot be used by this server; the message says why and what to do. */
export class DataDirectoryError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DataDirectoryError'
  }
}

/** Another process holds the directory. */
class DataDirectoryInUse extends DataDirectoryError {
  override readonly name = 'DataDirectoryInUse'
}

export type DataLock = AsyncDisposable & {
  /** The device and the inode of the locked file. */
  readonly identity: string | undefined
  /** The format that the directory has; undefined if it is new. */
  readonly format: number | undefined
  /** Makes it `DATA_FORMAT`, durably: an earlier version does not understand what this one writes from now on. */
  readonly raiseFormat: () => Promise<void>
  /** Throws a `Problem` if another directory has this name now: nothing keeps another server from using that. */
  readonly requireHeld: () => Promise<void>
}

/** Locks the directory until disposed. Creates it if it does not exist. Throws a `DataDirectoryError`. */
export async function lockDataDirectory(directory: string): Promise<DataLock> {
  await makeDirectories(directory, 0o700)
  const release = takeLock(directory)
  let format: number | undefined
  try {
    // Check under the lock: two servers of different versions may start at the same time.
    format = await readFormat(directory)
  } catch (error) {
    release()
    throw error
  }
  const lockedIdentity = await identityOf(directory)
  const requireHeld = shareNext(async () => {
    if ((await identityOf(directory)) !== lockedIdentity) throw movedAway(directory)
  })
  return {
    identity: lockedIdentity,
    format,
    raiseFormat: async () => {
      if (format !== DATA_FORMAT) await writeFormat(directory)
    },
    requireHeld,
    [Symbol.asyncDispose]: () => {
      release()
      return Promise.resolve()
    },
  }
}

/** Returns the identity of the lock file; undefined if it does not exist. Looks at the name only: see `takeLock`. */
async function identityOf(directory: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(join(directory, LOCK_FILE), { bigint: true })
    return `${dev}:${ino}`
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

const movedAway = (directory: string) =>
  new Problem(
    'storage_failed',
    `The data directory ${directory} was moved, removed or replaced while the server ran. Restart the server.`,
  )

const LOCK_FILE = 'lock.db'

/**
 * An exclusive transaction of SQLite is a lock of the kernel on a byte range of the file. It is released when its
 * process ends, also by `kill -9`, and works between containers that share the directory, where the pids of a lock file
 * mean nothing. Nothing else in this process may open `lock.db`: closing any descriptor of a file releases all its
 * POSIX locks.
 */
function takeLock(directory: string): () => void {
  const { DatabaseSync } = loadSqlite()
  const path = join(directory, LOCK_FILE)
  let database: Database | undefined
  try {
    const openedDatabase = (database = new DatabaseSync(path, { timeout: 0 }))
    openedDatabase.exec('BEGIN EXCLUSIVE')
    // The transaction of an empty database begins with a write, which a full disk would refuse at each later start.
    if (statSync(path).size === 0) openedDatabase.exec('PRAGMA user_version = 1; COMMIT; BEGIN EXCLUSIVE')
    return () => openedDatabase.close()
  } catch (cause) {
    database?.close()
    if (!isBusy(cause))
      throw new DataDirectoryError(
        `${directory} could not be locked (${cause instanceof Error ? cause.message : String(cause)}). ${adviceFor(cause, path)}`,
        { cause },
      )
    throw new DataDirectoryInUse(
      `${directory} is in use by another server. Stop that server, or use another data directory.`,
      { cause },
    )
  }
}

function adviceFor(error: unknown, path: string): string {
  return isDamaged(error)
    ? `Remove ${path}: it is damaged, and holds only the lock.`
    : 'Check that its disk has space, that this user may write there, and that files can be opened (ulimit -n).'
}

const formatIn = (directory: string): string => join(directory, 'version')

async function readFormat(directory: string): Promise<number | undefined> {
  const path = formatIn(directory)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
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
  return format
}

/** Renamed into place: a half-written number would lock every later start out of the data. */
const writeFormat = (directory: string): Promise<void> =>
  replaceFile(formatIn(directory), `${DATA_FORMAT}\n`, { draft: `${formatIn(directory)}.new` })

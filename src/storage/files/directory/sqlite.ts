/** Loads SQLite, and tells its errors apart. */
import { open, rm, stat } from 'node:fs/promises'
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/**
 * Loaded here, because importers of this file may not need it. Without the warning of Node 22 that SQLite is experimental:
 * it would be on the output of each program that embeds the server, and the server needs nothing of what may change.
 */
export function loadSqlite() {
  const warn = Object.getOwnPropertyDescriptor(process, 'emitWarning')
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    if (warn) Object.defineProperty(process, 'emitWarning', warn)
  }
}

export type Database = DatabaseSync
export type Statement = StatementSync

const SQLITE_ERROR = 1
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

export const isBusy = (error: unknown): boolean => hasCode(error, SQLITE_BUSY)

export const isDamaged = (error: unknown): boolean => hasCode(error, SQLITE_CORRUPT, SQLITE_NOTADB)

/** The statement is right: the database has other tables, or none, because it was emptied. */
export const isOfOtherTables = (error: unknown): boolean => hasCode(error, SQLITE_ERROR)

function hasCode(error: unknown, ...codes: readonly unknown[]): boolean {
  // The low byte of an extended code is the code itself.
  return error instanceof Error && 'errcode' in error && codes.includes(Number(error.errcode) & 0xff)
}

/** What threads can tell each other of an error of SQLite. */
export type SqliteFailure = { readonly message: string; readonly errcode: number | undefined }

export function failureOf(error: unknown): SqliteFailure {
  if (!(error instanceof Error)) return { message: String(error), errcode: undefined }
  return { message: error.message, errcode: 'errcode' in error ? Number(error.errcode) : undefined }
}

/** A write failed, for a reason that SQLite does not say: a quota, a limit of the size of files, or the disk itself. */
const SQLITE_IOERR_WRITE = 778

/**
 * Returns the error of the system for such a failed write to the file at `path`, if a write behind its end fails now as well;
 * otherwise the given error.
 */
export async function causeOfFailedWrite(failure: unknown, path: string): Promise<unknown> {
  if (!(failure instanceof Error && 'errcode' in failure && failure.errcode === SQLITE_IOERR_WRITE)) return failure
  const probe = `${path}-probe`
  try {
    const { size } = await stat(path)
    const file = await open(probe, 'w', 0o600)
    try {
      // The places are behind what the failed write may have added; a full file takes a part of it, and then nothing.
      for (const at of [size + ROOM_BYTES, size + 2 * ROOM_BYTES])
        await file.write(Buffer.alloc(ROOM_BYTES), 0, ROOM_BYTES, at)
      await file.sync()
    } finally {
      await file.close()
    }
    return failure
  } catch (cause) {
    return cause
  } finally {
    await rm(probe, { force: true }).catch(() => {}) // as full as the rest
  }
}

const ROOM_BYTES = 256 * 1024

/** Returns an error with the system's code for it: `EIO` for what SQLite does not tell apart. */
export function errorFor({ message, errcode }: SqliteFailure): Error {
  if (errcode === undefined) return new Error(message)
  const code = { [SQLITE_FULL]: 'ENOSPC', [SQLITE_READONLY]: 'EROFS' }[errcode & 0xff] ?? 'EIO'
  return Object.assign(new Error(`SQLite: ${message}`), { code, errcode })
}

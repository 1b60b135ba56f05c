/** Loads SQLite, and tells its errors apart. */
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

const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

export const isBusy = (error: unknown): boolean => hasCode(error, SQLITE_BUSY)

export const isDamaged = (error: unknown): boolean => hasCode(error, SQLITE_CORRUPT, SQLITE_NOTADB)

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

/** Returns an error with the system's code for it: `EIO` for what SQLite does not tell apart. */
export function errorFor({ message, errcode }: SqliteFailure): Error {
  if (errcode === undefined) return new Error(message)
  const code = { [SQLITE_FULL]: 'ENOSPC', [SQLITE_READONLY]: 'EROFS' }[errcode & 0xff] ?? 'EIO'
  return Object.assign(new Error(`tables.db: ${message}`), { code, errcode })
}

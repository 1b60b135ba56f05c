/** What an error of PostgreSQL, or of the connection to it, means for the caller. */
import { Problem } from '../../contract/problem.ts'
import { codeOf } from '../../lib/error-code.ts'

/** The database cannot be used by this server; the message says why and what to do. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'
}

/** A statement was sent and its connection broke before the answer: it may have been executed, or may still be. */
export class LostStatement extends Error {
  override readonly name = 'LostStatement'
}

/** No connection could be made, or it is gone, and no statement was sent. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection'

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/** The statement had no effect, and may succeed later. */
const REFUSED_FOR_NOW = new Set([
  '25006', // read-only: a standby
  '40001', // serialization failure
  '40P01', // deadlock
  '53300', // too many connections
  '55P03', // lock not available
  '57014', // cancelled, for example by a `statement_timeout`
  '57P03', // the server is starting or stopping
])

/** Errors of the server have five digits or capitals; those of the system have names. */
const isOfServer = (code: string): boolean => /^[\dA-Z]{5}$/.test(code) && /\d/.test(code)

export const isReadOnly = (error: unknown): boolean => codeOf(error) === '25006'

/**
 * Returns true if the connection is gone. Then the statement may have been executed, also with an error of the server: a
 * session that is ended while it waits for a standby has committed.
 */
export function endsSession(error: unknown): boolean {
  const code = codeOf(error) ?? ''
  return !isOfServer(code) || code.startsWith('08') || code === '57P01' || code === '57P02'
}

/** Returns what the end of a connection means: the error of the server, or that it is lost. */
export const faultOfConnection = (error: unknown): Error =>
  error instanceof Error && (error instanceof LostStatement || isOfServer(codeOf(error) ?? ''))
    ? error
    : new LostConnection(error)

/** Returns true for an error of this program, such as a value that cannot be sent. The database has nothing to do with it. */
export const isDefect = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError

/** Returns true if waiting may help: the database or the network to it is away. Only connections have such errors. */
export function isOutage(error: unknown): boolean {
  if (error instanceof LostStatement || error instanceof LostConnection) return true
  const code = codeOf(error) ?? ''
  return REFUSED_FOR_NOW.has(code) || (isOfServer(code) && endsSession(error))
}

/** Codes of the system: nobody answers there now. A name may be unknown because its machine has not started. */
const NOT_REACHED = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
])

/**
 * Returns true if a connection that was refused may be made later with the same settings: the database has not started, and
 * no password, name or certificate is wrong.
 */
export function mayConnectLater(error: unknown): boolean {
  const code = codeOf(error instanceof LostConnection ? error.cause : error) ?? ''
  if (code !== '' || !(error instanceof Error)) return NOT_REACHED.has(code) || (isOfServer(code) && isOutage(error))
  // The driver has no codes for connections that end or do not answer.
  return error instanceof LostStatement || /^timeout expired|^Connection terminated/.test(error.message)
}

/** Returns the error for callers: a `Problem`, or the error itself if it shows a defect. */
export function toProblem(error: unknown): unknown {
  if (codeOf(error) === '53100')
    return new Problem('storage_full', 'The database has no room to store this. Free some space there and try again.', {
      cause: error,
    })
  return isOutage(error) ? unavailable(error) : error
}

/** The problem of a single append, too, before the instance itself has noticed. */
export const takenOver = (cause?: unknown): Problem =>
  new Problem(
    'storage_unavailable',
    'Another server has taken over the database, and this one stops. Nothing was stored. Send the request to the other one.',
    { cause },
  )

const unavailable = (cause: unknown): Problem =>
  new Problem('storage_unavailable', 'The database does not answer, and nothing was stored. Try again in a moment.', {
    cause,
  })

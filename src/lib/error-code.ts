/** The code of a failed system call, such as `ENOENT`. */
import { constants } from 'node:os'

/**
 * Returns undefined for an error without a code, and for anything that is not an error. Also names the errors that Node
 * calls unknown: an exceeded quota (EDQUOT), and a file that its network file system has lost (ESTALE). For a thread that
 * cannot be started for lack of descriptors, returns the code in the message.
 */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined
  const code = String(error.code)
  if (code === 'ERR_WORKER_INIT_FAILED') return /\b(?:EMFILE|ENFILE)\b/.exec(error.message)?.[0] ?? code
  if (!code.startsWith('Unknown system error') || !('errno' in error)) return code
  const number = -Number(error.errno)
  return Object.entries(constants.errno).find(([, each]) => each === number)?.[0] ?? code
}

/** Returns true for errors about missing space: the disk, the quota or the maximum file size. */
export function isOutOfRoom(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}

/** Returns true for errors about missing descriptors: of this process, or of the machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'EMFILE' || code === 'ENFILE'
}

/** Serves as a `catch`: returns undefined for an error with one of the codes, and throws any other error. */
export const ignoring =
  (...codes: readonly string[]) =>
  (error: unknown): undefined => {
    if (!codes.includes(codeOf(error) ?? '')) throw error
  }

/** Serves as a `catch` for a file that may not exist. */
export const ignoreMissing = ignoring('ENOENT')

const OF_ONE_FILE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EISDIR', 'ENOTDIR', 'ELOOP', 'EIO'])

/** True if one file cannot be read, which says nothing about others. */
export function isUnreadable(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && OF_ONE_FILE.has(code)
}

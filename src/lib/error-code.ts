/** The code of a failed system call, such as `ENOENT`. */

/** Undefined for an error without a code, and for anything that is not an error. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** No room for what was to be written: the disk, the quota or the largest file allowed. */
export function isOutOfRoom(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}

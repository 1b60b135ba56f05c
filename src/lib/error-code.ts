/** The code of a failed system call, such as `ENOENT`. */

/** Returns undefined for an error without a code, and for anything that is not an error. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** Returns true for errors about missing space: the disk, the quota or the maximum file size. */
export function isOutOfRoom(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}

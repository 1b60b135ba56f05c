/** The code of a failed system call, such as `ENOENT`. */

/** Undefined for an error without a code, and for anything that is not an error. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

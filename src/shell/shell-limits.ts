/** What the shells of one conversation may use. */

/** Of each command. */
export type BashCommandLimits = {
  /** Bytes of each output stream that a result holds. */
  readonly outputBytes: number
  /** Bytes of the file with the whole of a long one; who writes more is ended. */
  readonly fullOutputBytes: number
  /** After each of SIGINT, SIGTERM and SIGKILL. */
  readonly graceMs: number
}

export type ShellLimits = BashCommandLimits & {
  /** Bytes of the file with what processes write after their command has ended; the rest is dropped. */
  readonly backgroundBytes: number
  /** A shell without processes closes after this; its state is kept. */
  readonly idleMs: number
  /** A shell that has not reported by then, with its state back, is ended. */
  readonly startMs: number
  readonly maxSessions: number
}

export const MAX_SHELL_SESSIONS = 16

export const DEFAULT_SHELL_LIMITS: ShellLimits = {
  outputBytes: 32 * 1024,
  fullOutputBytes: 1024 ** 3,
  backgroundBytes: 256 * 1024 ** 2,
  // Three of them stay within the two seconds in which a pause has to answer.
  graceMs: 600,
  idleMs: 10 * 60_000,
  startMs: 10_000,
  maxSessions: MAX_SHELL_SESSIONS,
}

/** How often a shell for one command is checked for processes that the command left. */
export const LAST_CHECK_MS = 1000

/** The limits of one conversation's shells. */

import { mayBegin, type Lease } from '../storage/lease/lease.ts'

/** Limits per command. */
export type BashCommandLimits = {
  /** Bytes of each output stream in a result. */
  readonly outputBytes: number
  /** Bytes of the file with a complete long output; a command that writes more is ended. */
  readonly fullOutputBytes: number
  /** The time after each of SIGINT, SIGTERM and SIGKILL. */
  readonly graceMs: number
  /** Commands and programs begin only while it is held, and the time of commands counts only then. */
  readonly lease?: Lease | undefined
}

export type ShellLimits = BashCommandLimits & {
  /** Bytes of the file with output after a command's end; the rest is dropped. */
  readonly backgroundBytes: number
  /** A shell without processes closes after this time; its state is kept. */
  readonly idleMs: number
  /** A shell that has not reported by then, with its state restored, is ended. */
  readonly startMs: number
  readonly maxSessions: number
}

/** Waits until a command may start. Resolves to false if it may not: its signal was aborted, or the lease is lost. */
export const mayStart = async ({ lease }: ShellLimits, signal: AbortSignal): Promise<boolean> =>
  !lease || (await mayBegin(lease, signal))

export const MAX_SHELL_SESSIONS = 16

export const DEFAULT_SHELL_LIMITS: ShellLimits = {
  outputBytes: 32 * 1024,
  fullOutputBytes: 1024 ** 3,
  backgroundBytes: 256 * 1024 ** 2,
  // Three of them fit into the two seconds in which a pause must respond.
  graceMs: 600,
  idleMs: 10 * 60_000,
  startMs: 10_000,
  maxSessions: MAX_SHELL_SESSIONS,
}

/** How often the shell of a single command is checked for remaining background processes. */
export const LAST_CHECK_MS = 1000

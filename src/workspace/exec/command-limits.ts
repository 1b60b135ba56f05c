/** How many client commands a conversation runs and remembers, and how much of their output it keeps. */

export type ClientCommandLimits = {
  /** Commands that run or wait for their turn. */
  readonly running: number
  /** Commands whose records are kept. */
  readonly records: number
  /** Bytes kept of each output stream of a command. */
  readonly streamBytes: number
  /** Bytes of output kept for all commands together. */
  readonly outputBytes: number
}

export const DEFAULT_COMMAND_LIMITS: ClientCommandLimits = {
  running: 16,
  records: 1000,
  streamBytes: 64 * 1024 ** 2,
  outputBytes: 1024 ** 3,
}

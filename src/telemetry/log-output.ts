/** Decides which log lines are written while the reader of the log is slower than the server, or has stopped reading. */
import type { Writable } from 'node:stream'

/** Lines that wait for the reader. Without a limit they would fill the memory. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024

export class LogOutput {
  readonly #output: Pick<Writable, 'write' | 'writableLength'>
  readonly #onGap: (dropped: number) => void
  #dropped = 0

  /** `onGap` is called before the first line that is written after others were dropped. */
  constructor(output: Pick<Writable, 'write' | 'writableLength'>, onGap: (dropped: number) => void) {
    this.#output = output
    this.#onGap = onGap
  }

  /** Drops the line if too much waits; then `line` is not called. */
  write(line: () => string): void {
    if (this.#output.writableLength > MAX_WAITING_BYTES) {
      this.#dropped++
      return
    }
    const droppedLines = this.#dropped
    this.#dropped = 0
    if (droppedLines > 0) this.#onGap(droppedLines)
    this.#output.write(line())
  }
}

/** What background processes write after their command has ended: one file for each command, both streams as they come. */
import { CappedFile } from '../lib/capped-file.ts'
import type { OutputFifo } from './output-fifo.ts'

const MAX_BACKGROUND_BYTES = 256 * 1024 ** 2
/** Of one shell. Each costs up to two pipes and a file. */
const MAX_BACKGROUND_OUTPUTS = 64
const SLOW_READ_MS = 100

export class BackgroundOutputs {
  readonly #open = new Set<OutputFifo>()

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** Takes over pipes that are still held, until nobody holds them. Answers a sentence for the reader of the result. */
  adopt(fifos: readonly OutputFifo[], path: string): string {
    if (this.#open.size >= MAX_BACKGROUND_OUTPUTS) {
      for (const fifo of fifos) fifo.close()
      return 'Too many background processes write to their shell: the output of this one is closed. Redirect it to a file.'
    }
    const file = new CappedFile({
      path,
      limit: MAX_BACKGROUND_BYTES,
      onDrain: () => fifos.forEach((fifo) => fifo.resume()),
    })
    const pending = new Set(fifos)
    for (const fifo of fifos) {
      this.#open.add(fifo)
      fifo.retire(
        (bytes) => (file.isFull ? readSlowly(fifo) : file.write(bytes)),
        () => {
          this.#open.delete(fifo)
          pending.delete(fifo)
          if (pending.size === 0) void file.end()
        },
      )
    }
    return `Output of background processes goes to ${path}.`
  }

  close(): void {
    for (const fifo of this.#open) fifo.close()
  }
}

/** Beyond its file a process may go on writing, but not so fast that it costs the server anything. */
function readSlowly(fifo: OutputFifo): boolean {
  setTimeout(() => fifo.resume(), SLOW_READ_MS).unref()
  return false
}

/** Appends a stream to a file up to a fixed size, without blocking and with bounded memory. */
import { createWriteStream, openSync, type WriteStream } from 'node:fs'

const BUFFERED_BYTES = 1024 * 1024

/** A file that cannot be written (a full disk) does not throw: what follows is dropped, and `error` says why. */
export class CappedFile {
  readonly path: string
  error: Error | undefined
  readonly #limit: number
  readonly #stream: WriteStream | undefined
  #length = 0

  /** Makes the file at once. `onDrain` is called when writing may go on after `write` answered false. */
  constructor({ path, limit, onDrain }: { path: string; limit: number; onDrain: () => void }) {
    this.path = path
    this.#limit = limit
    this.#stream = this.#open()
    this.#stream?.on('drain', onDrain)
    this.#stream?.on('error', (error) => {
      this.error ??= error
      onDrain()
    })
  }

  get isFull(): boolean {
    return this.#length >= this.#limit
  }

  /** Copies `bytes`. Answers false when the caller should wait for `onDrain`. */
  write(bytes: Uint8Array): boolean {
    const room = Math.min(bytes.length, this.#limit - this.#length)
    if (room <= 0 || this.error || !this.#stream) return true
    this.#length += room
    return this.#stream.write(Buffer.from(bytes.subarray(0, room)))
  }

  /** Resolves when all is written, or failed. */
  async end(): Promise<void> {
    const stream = this.#stream
    if (!stream || stream.closed) return
    await new Promise<void>((resolve) => {
      stream.once('close', resolve)
      stream.end()
    })
  }

  #open(): WriteStream | undefined {
    try {
      const fd = openSync(this.path, 'a', 0o600)
      return createWriteStream(this.path, { fd, highWaterMark: BUFFERED_BYTES })
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error))
      return undefined
    }
  }
}

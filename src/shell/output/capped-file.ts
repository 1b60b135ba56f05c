/** Appends a stream to a file up to a fixed size, without blocking and with bounded memory. */
import { createWriteStream, openSync, type WriteStream } from 'node:fs'

const BUFFERED_BYTES = 1024 * 1024

export type CappedFileOptions = {
  readonly path: string
  /** Bytes. */
  readonly limit: number
  readonly length?: number
  readonly onDrain: () => void
  readonly onWritten?: () => void
}

/** A write error (a full disk) is not thrown: later data is dropped, and `error` says why. */
export class CappedFile {
  readonly path: string
  error: Error | undefined
  readonly #limit: number
  readonly #onWritten: () => void
  readonly #stream: WriteStream | undefined
  #length = 0

  /**
   * Creates the file immediately, or appends to it: existing data counts for `limit` only as `length`. `onDrain` is
   * called when writing can continue after `write` returned false, `onWritten` when more of it can be read.
   */
  constructor({ path, limit, length = 0, onDrain, onWritten = () => {} }: CappedFileOptions) {
    this.path = path
    this.#limit = limit
    this.#length = length
    this.#onWritten = onWritten
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

  /** Copies `bytes`. Returns false if the caller should wait for `onDrain`. */
  write(bytes: Uint8Array): boolean {
    const room = Math.min(bytes.length, this.#limit - this.#length)
    if (room <= 0 || this.error || !this.#stream) return true
    this.#length += room
    return this.#stream.write(Buffer.from(bytes.subarray(0, room)), this.#onWritten)
  }

  /** Resolves when everything is written, or writing failed. */
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

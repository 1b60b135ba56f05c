/** Reads a pipe in few large pieces: pauses the reading for a moment while many small pieces are written to it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Readable } from 'node:stream'

const HOLD_MS = 20

/** Of a stream over a pipe. `pause` would go on reading until much is buffered. */
type Handle = { readStart(): unknown; readStop(): unknown }

export class ThrottledReader {
  readonly #stream: Readable & { readonly _handle?: Partial<Handle> | null }
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Readable) {
    this.#stream = stream
  }

  /** Until `resume`, or for a short time. */
  pause(): void {
    if (this.#stream.destroyed) return
    this.#stream._handle?.readStop?.()
    this.#timer ??= setTimeout(() => this.resume(), HOLD_MS).unref()
  }

  resume(): void {
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#stream.destroyed) this.#stream._handle?.readStart?.()
  }

  /** Resolves when all has been read that was written before the call. */
  async catchUp(): Promise<void> {
    this.resume()
    // The event loop looks at the pipe between two turns.
    await nextTurn()
    await nextTurn()
  }
}

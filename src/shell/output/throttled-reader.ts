/** Reads a pipe in few large pieces: pauses briefly while many small pieces are written to it. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import type { Readable } from 'node:stream'

const HOLD_MS = 20

/** The handle of a pipe's stream. The stream's `pause` would continue reading until much is buffered. */
type Handle = { readStart(): unknown; readStop(): unknown }

export class ThrottledReader {
  readonly #stream: Readable & { readonly _handle?: Partial<Handle> | null }
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Readable) {
    this.#stream = stream
  }

  /** Pauses until `resume`, or for a short time. */
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

  /** Resolves when everything written before the call has been read. */
  async catchUp(): Promise<void> {
    this.resume()
    // The event loop polls the pipe between two turns.
    await yieldToLoop()
    await yieldToLoop()
  }
}

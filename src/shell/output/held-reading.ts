/** Holds up the reading of a pipe for a moment, so that what is written to it in many small pieces is read in a few. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Readable } from 'node:stream'

const HOLD_MS = 20

/** Of a stream over a pipe. `pause` would go on reading until much is buffered. */
type Handle = { readStart(): unknown; readStop(): unknown }

export class HeldReading {
  readonly #stream: Readable & { readonly _handle?: Partial<Handle> | null }
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Readable) {
    this.#stream = stream
  }

  /** Until `goOn`, or for a short time. */
  hold(): void {
    if (this.#stream.destroyed) return
    this.#stream._handle?.readStop?.()
    this.#timer ??= setTimeout(() => this.goOn(), HOLD_MS).unref()
  }

  goOn(): void {
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#stream.destroyed) this.#stream._handle?.readStart?.()
  }

  /** Resolves when all has been read that was written before the call. */
  async catchUp(): Promise<void> {
    this.goOn()
    // The event loop looks at the pipe between two turns.
    await nextTurn()
    await nextTurn()
  }
}

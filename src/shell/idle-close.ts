/** Closes something that has been idle for some time, and tries again later if that fails. */

const RETRY_MS = 1000

export class IdleClose {
  readonly #close: () => Promise<void>
  #timer: NodeJS.Timeout | undefined
  /** A time of the monotonic clock, in milliseconds. Infinity while it is in use. */
  #idleSince = Infinity
  #isEnded = false

  constructor(close: () => Promise<void>) {
    this.#close = close
  }

  /** It is idle from now on, and is closed after `ms`. */
  begin(ms: number): void {
    if (this.#isEnded) return
    this.#idleSince = performance.now()
    this.#closeIn(ms)
  }

  /** It is in use. */
  stop(): void {
    this.#idleSince = Infinity
    clearTimeout(this.#timer)
  }

  /** It is closed in another way: `begin` has no effect any more. */
  end(): void {
    this.#isEnded = true
    this.stop()
  }

  /** Closes it now if it has been idle for `ms`. */
  async closeAfter(ms: number): Promise<void> {
    if (performance.now() - this.#idleSince >= ms) await this.#close()
  }

  #closeIn(ms: number): void {
    clearTimeout(this.#timer)
    const close = () => void this.#close().catch(() => this.#closeIn(RETRY_MS))
    this.#timer = setTimeout(close, ms).unref()
  }
}

/** Tries work again after a failure, with waits that double from one failure to the next. */

export type RetryTiming = { readonly firstWaitMs: number; readonly longestWaitMs: number }

const TIMING: RetryTiming = { firstWaitMs: 100, longestWaitMs: 10_000 }

export class Retrier {
  readonly #work: () => Promise<unknown>
  readonly #timing: RetryTiming
  #waitMs: number
  #timer: NodeJS.Timeout | undefined
  #isTrying = false
  #isWanted = false
  #isStopped = false

  /** `work` is tried again when it rejects, or when `later` was called while it was under way. It reports its own errors. */
  constructor(work: () => Promise<unknown>, timing: RetryTiming = TIMING) {
    this.#work = work
    this.#timing = timing
    this.#waitMs = timing.firstWaitMs
  }

  /** Resolves after the first try. */
  async now(): Promise<void> {
    this.#isTrying = true
    this.#isWanted = false
    await this.#work().catch(() => (this.#isWanted = true))
    this.#isTrying = false
    this.#waitMs = this.#isWanted ? Math.min(2 * this.#waitMs, this.#timing.longestWaitMs) : this.#timing.firstWaitMs
    if (this.#isWanted) this.later()
  }

  /** Tries in a while, unless that is due already. */
  later(): void {
    this.#isWanted = true
    if (this.#isTrying || this.#timer || this.#isStopped) return
    // Spread: a disk that was full has failed many at the same moment.
    const waitMs = this.#waitMs * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.now()
    }, waitMs).unref()
  }

  /** What is being tried is tried to its end, and not again. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

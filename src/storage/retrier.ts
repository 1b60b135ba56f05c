/** Retries writes after a failure, with exponential backoff. */
import { timerMs } from '../lib/bounded-wait.ts'

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

  /** Retries `work` after it rejects, or if `later` was called while it ran. `work` reports its own errors. */
  constructor(work: () => Promise<unknown>, timing: RetryTiming = TIMING) {
    this.#work = work
    this.#timing = timing
    this.#waitMs = timing.firstWaitMs
  }

  /** Resolves after the first attempt. */
  async now(): Promise<void> {
    this.#isTrying = true
    this.#isWanted = false
    await this.#work().catch(() => (this.#isWanted = true))
    this.#isTrying = false
    this.#waitMs = this.#isWanted ? Math.min(2 * this.#waitMs, this.#timing.longestWaitMs) : this.#timing.firstWaitMs
    if (this.#isWanted) this.later()
  }

  /** Schedules an attempt, unless one is already scheduled. */
  later(): void {
    this.#isWanted = true
    if (this.#isTrying || this.#timer || this.#isStopped) return
    // Add jitter: a disk that was full has failed many conversations at the same moment.
    const waitMs = this.#waitMs * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.now()
    }, timerMs(waitMs)).unref()
  }

  /** Stops retrying; an attempt in progress finishes. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

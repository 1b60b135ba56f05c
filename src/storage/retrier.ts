/** Retries writes after a failure, with exponential backoff. */
import type { Backoff } from '../lib/backoff.ts'
import { backoffMs } from '../lib/backoff.ts'
import { timerMs } from '../lib/bounded-wait.ts'

/** The backoff has jitter: a disk that was full has failed many conversations at the same moment. */
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000, jitterFrom: 0.75 }

export class Retrier {
  readonly #work: () => Promise<unknown>
  readonly #backoff: Backoff
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #isTrying = false
  #isWanted = false
  #isStopped = false

  /** Retries `work` after it rejects, or if `later` was called while it ran. `work` reports its own errors. */
  constructor(work: () => Promise<unknown>, backoff: Backoff = BACKOFF) {
    this.#work = work
    this.#backoff = backoff
  }

  /** Resolves after the first attempt. */
  async now(): Promise<void> {
    this.#isTrying = true
    this.#isWanted = false
    await this.#work().catch(() => (this.#isWanted = true))
    this.#isTrying = false
    this.#failures = this.#isWanted ? this.#failures + 1 : 0
    if (this.#isWanted) this.later()
  }

  /** Schedules an attempt, unless one is already scheduled. */
  later(): void {
    this.#isWanted = true
    if (this.#isTrying || this.#timer || this.#isStopped) return
    const waitMs = backoffMs(this.#failures + 1, this.#backoff)
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

/** The input tokens that a provider still allows, which grow again until its limit is reached. */
import { MAX_WAIT_MS } from './retry.ts'
import type { TokenAllowance } from './limit-headers.ts'

export class TokenBucket {
  /** Milliseconds, as all times here. */
  readonly #at: number
  readonly #allowance: TokenAllowance
  /** Tokens of requests that have started since. */
  #taken = 0

  constructor(allowance: TokenAllowance, now: number) {
    this.#allowance = allowance
    this.#at = now
  }

  take(tokens: number): void {
    this.#taken += tokens
  }

  /** Returns when there are so many tokens: at the reset at the latest, because then there are not going to be more. */
  readyAt(tokens: number): number {
    const { requestsLeft, limit, resetMs } = this.#allowance
    const missing = tokens + this.#taken - requestsLeft
    if (missing <= 0) return 0
    const part = limit === undefined ? 1 : Math.min(missing / (limit - requestsLeft), 1)
    return this.#at + Math.min(part * resetMs, MAX_WAIT_MS)
  }
}

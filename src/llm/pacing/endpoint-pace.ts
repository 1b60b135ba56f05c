/**
 * The pace of requests to one endpoint, shared by all conversations that use it: when the endpoint limits one of them,
 * the others wait too, and then start one after the other, faster with each success.
 */
import type { ReplyHeaders } from './retry.ts'
import { MAX_WAIT_MS } from './retry.ts'
import { allowanceOf, tokenAllowanceOf } from './limit-headers.ts'
import { TokenBucket } from './token-bucket.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

/** Requests per second after the endpoint limited one. */
const FIRST_RATE = 2

/** What a success multiplies the rate by, up to the highest one. At that one it ends when nobody waits any more. */
const GROWTH = 1.3
const HIGHEST_RATE = 50
const SLOWEST_RATE = 0.5

/** How long a model counts as overloaded at least, in milliseconds: so long its fallbacks are asked first. */
const OVERLOADED_MS = 30_000

export class EndpointPace {
  /** The requests that wait, in order, with their input tokens. */
  readonly #waiting = new Map<() => void, number>()
  /** A time of `performance.now()`, as all times here. No request starts before. */
  #closedUntil = 0
  #overloadedUntil = 0
  /** Requests per second; undefined if there is no limit. */
  #rate: number | undefined
  #startedAt = 0
  /** Attempts that have started and not ended. A single one needs no pace: its own backoff is longer. */
  #active = 0
  /** Requests that the provider still allows until `#resetAt`; undefined if it does not say. */
  #requestsLeft: number | undefined
  #resetAt = 0
  #tokens: TokenBucket | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * Returns undefined if an attempt starts now, and otherwise waits for its turn; `end` must follow. `tokens` is an
   * estimate of what counts as its input. Rejects with the signal's reason, and then nothing has started.
   */
  start(signal: AbortSignal, tokens = 0): Promise<void> | undefined {
    const now = performance.now()
    if (this.#waiting.size > 0 || this.#nextAt(now, tokens) > now) return this.#wait(signal, tokens)
    this.#begin(now, tokens)
    return undefined
  }

  end(): void {
    this.#active--
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** True for a while after the endpoint limited a request. */
  get isOverloaded(): boolean {
    return performance.now() < this.#overloadedUntil
  }

  /** The endpoint accepted a request. */
  accepted(headers: ReplyHeaders): void {
    if (this.#rate === HIGHEST_RATE && this.#waiting.size === 0) this.#rate = undefined
    else if (this.#rate !== undefined) this.#rate = Math.min(this.#rate * GROWTH, HIGHEST_RATE)
    this.#read(headers)
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** The endpoint refused a request because of its limits; `waitMs` is how long it, or we, want to wait. */
  limited(waitMs: number, headers: ReplyHeaders | undefined): void {
    const now = performance.now()
    // Requests of the same moment are refused together: only the first of them halves the rate.
    const isFirst = now >= this.#closedUntil
    if (isFirst) this.#rate = Math.max((this.#rate ?? 2 * FIRST_RATE) / 2, SLOWEST_RATE)
    this.#closedUntil = Math.max(this.#closedUntil, now + Math.min(waitMs, MAX_WAIT_MS))
    this.#overloadedUntil = Math.max(this.#closedUntil, now + OVERLOADED_MS)
    if (headers) this.#read(headers)
    if (this.#waiting.size > 0) this.#schedule()
  }

  #read(headers: ReplyHeaders): void {
    const tokens = tokenAllowanceOf(headers, Date.now())
    if (tokens) this.#tokens = new TokenBucket(tokens, performance.now())
    const allowance = allowanceOf(headers, Date.now())
    if (!allowance) return
    this.#requestsLeft = allowance.requestsLeft
    this.#resetAt = performance.now() + Math.min(allowance.resetMs, MAX_WAIT_MS)
  }

  #wait(signal: AbortSignal, tokens: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      this.#waiting.delete(begin)
      if (this.#waiting.size === 0) clearTimeout(this.#timer)
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the contract of a signal
      reject(signal.reason)
    }
    const begin = () => {
      signal.removeEventListener('abort', leave)
      resolve()
    }
    signal.addEventListener('abort', leave, { once: true })
    this.#waiting.set(begin, tokens)
    this.#schedule()
    return promise
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    const now = performance.now()
    const [first = 0] = this.#waiting.values()
    this.#timer = setTimeout(() => this.#release(), timerMs(this.#nextAt(now, first) - now))
  }

  #release(): void {
    const now = performance.now()
    for (const [begin, tokens] of this.#waiting) {
      if (this.#nextAt(now, tokens) > now) break
      this.#waiting.delete(begin)
      this.#begin(now, tokens)
      begin()
    }
    if (this.#waiting.size > 0) this.#schedule()
  }

  #begin(now: number, tokens: number): void {
    this.#startedAt = now
    this.#tokens?.take(tokens)
    this.#active++
    if (this.#requestsLeft !== undefined && now >= this.#resetAt) this.#requestsLeft = undefined
    if (this.#requestsLeft !== undefined) this.#requestsLeft--
  }

  /** Returns the time when the next request, which has so many tokens, may start. */
  #nextAt(now: number, tokens: number): number {
    const pacedAt = this.#rate === undefined || this.#active === 0 ? 0 : this.#startedAt + 1000 / this.#rate
    const isSpent = this.#requestsLeft !== undefined && this.#requestsLeft <= 0 && now < this.#resetAt
    const room = tokens > 0 ? (this.#tokens?.readyAt(tokens) ?? 0) : 0
    return Math.max(this.#closedUntil, pacedAt, isSpent ? this.#resetAt : 0, room)
  }
}

/**
 * Calls of hooks that nobody waits for. A storm of them has a bound, and calls about the same thing stay in order: one at
 * a time, merged while they wait.
 */
import { Problem } from '../../contract/problem.ts'

export type PendingCallsDeps<T> = {
  /** Merges both, when the same thing happens to something that still waits. */
  readonly merge: (before: T, now: T) => T
  readonly onFault: (error: unknown) => void
}

export type PendingCall<T> = {
  /** `lost`: how many older calls were dropped before this one. May reject. */
  readonly call: (what: T, lost: number) => Promise<void>
  /** Called once: the call has ended, was dropped, or became part of a later one. */
  readonly onEnd?: () => void
}

type Waiting<T> = PendingCall<T> & { readonly what: T }

/** The oldest call is dropped when more of them wait. */
export const MAX_WAITING = 256

const MAX_AT_ONCE = 4

export class PendingCalls<T> {
  readonly #deps: PendingCallsDeps<T>
  /** The calls that wait, in order. */
  readonly #waiting = new Map<string, Waiting<T>>()
  readonly #running = new Set<string>()
  #lost = 0
  #isClosed = false

  constructor(deps: PendingCallsDeps<T>) {
    this.#deps = deps
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#running.size === 0
  }

  /** Calls it at once, or when there is room. Does nothing after `close`. */
  add(key: string, what: T, call: PendingCall<T>): void {
    if (this.#isClosed) return call.onEnd?.()
    const before = this.#waiting.get(key)
    this.#waiting.set(key, { ...call, what: before ? this.#deps.merge(before.what, what) : what })
    before?.onEnd?.()
    this.#begin()
    const [oldest] = this.#waiting.size > MAX_WAITING ? this.#waiting : []
    if (!oldest) return
    this.#waiting.delete(oldest[0])
    this.#lost++
    oldest[1].onEnd?.()
  }

  /** Drops what waits. The caller ends the calls that run. */
  close(): void {
    this.#isClosed = true
    for (const { onEnd } of this.#waiting.values()) onEnd?.()
    this.#waiting.clear()
  }

  #begin(): void {
    for (const [key, next] of this.#waiting) {
      if (this.#running.size >= MAX_AT_ONCE) return
      if (this.#running.has(key)) continue
      this.#waiting.delete(key)
      this.#running.add(key)
      const lostCount = this.#lost
      this.#lost = 0
      next
        .call(next.what, lostCount)
        .catch((error: unknown) => (error instanceof Problem ? undefined : this.#deps.onFault(error)))
        .finally(() => {
          this.#running.delete(key)
          next.onEnd?.()
          this.#begin()
        })
    }
  }
}

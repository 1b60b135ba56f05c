/** Counts what is in use at the same time, in total and per key. Does not wait: `queue.ts` adds that. */

/** Missing limits are infinite. */
export type SlotLimits = { readonly limit?: number; readonly perKey?: number }

export class Slots {
  #limit: number
  readonly #perKey: number
  /** Used only if keys have a limit. */
  readonly #ofKey = new Map<string, number>()
  #taken = 0

  constructor({ limit = Infinity, perKey = Infinity }: SlotLimits) {
    this.#limit = limit
    this.#perKey = perKey
  }

  get taken(): number {
    return this.#taken
  }

  /** Holders above a lower limit keep their slots. */
  set limit(limit: number) {
    this.#limit = limit
  }

  /** Returns an idempotent release function; undefined if no slot is free. */
  take(key = ''): (() => void) | undefined {
    if (!this.enter(key)) return undefined
    let isTaken = true
    return () => {
      if (isTaken) this.leave(key)
      isTaken = false
    }
  }

  /** Takes a slot if one is free. Each `true` must be followed by one `leave`. */
  enter(key: string): boolean {
    if (this.#taken >= this.#limit) return false
    if (this.#perKey !== Infinity) {
      const count = this.#ofKey.get(key) ?? 0
      if (count >= this.#perKey) return false
      this.#ofKey.set(key, count + 1)
    }
    this.#taken++
    return true
  }

  leave(key: string): void {
    this.#taken--
    if (this.#perKey === Infinity) return
    const remainingCount = (this.#ofKey.get(key) ?? 1) - 1 // `enter` has set it
    // Without this the map would keep every key ever used.
    if (remainingCount > 0) this.#ofKey.set(key, remainingCount)
    else this.#ofKey.delete(key)
  }
}

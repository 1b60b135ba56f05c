/** Finds the instances that have died, from counters that each raises while it lives. Compares no clocks of two machines. */

export type InstanceCounter = { readonly id: number; readonly counter: number }

/**
 * The times when the counters were asked for, and when they arrived: they were read at some time in between. Monotonic,
 * in milliseconds.
 */
export type Observation = { readonly sentAt: number; readonly answeredAt: number }

type SeenCounter = { readonly counter: number; readonly since: number }

export class CounterWatch {
  readonly #ttlMs: number
  #seenCounters: ReadonlyMap<number, SeenCounter> = new Map()
  #lastAt = -Infinity

  constructor({ ttlMs }: { readonly ttlMs: number }) {
    this.#ttlMs = ttlMs
  }

  /**
   * Returns those whose counter has certainly not changed for the TTL. Time counts only while the observer itself sees the
   * database: after half a TTL without an observation it begins again, since the others could not raise their counters either.
   */
  observe(counters: readonly InstanceCounter[], { sentAt, answeredAt }: Observation): InstanceCounter[] {
    const isContinuous = sentAt - this.#lastAt <= this.#ttlMs / 2
    this.#lastAt = answeredAt
    const before = isContinuous ? this.#seenCounters : new Map<number, SeenCounter>()
    this.#seenCounters = new Map(
      counters.map(({ id, counter }) => {
        const seenCounter = before.get(id)
        return [id, seenCounter?.counter === counter ? seenCounter : { counter, since: answeredAt }]
      }),
    )
    return counters.filter(({ id }) => sentAt - (this.#seenCounters.get(id)?.since ?? sentAt) >= this.#ttlMs)
  }
}

/** Random numbers that a seed gives again. */

export type Random = {
  /** A whole number from 0 up to, but not including, `limit`. */
  readonly below: (limit: number) => number
  readonly pick: <T>(values: readonly T[]) => T
}

/** mulberry32: small, and good enough to choose moments by. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { below, pick: (values) => values[below(values.length)]! }
}

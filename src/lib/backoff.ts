/**
 * How long to wait before what has failed is tried again: exponential backoff, and what `Retry-After` asks for. The only
 * file that computes such waits; who waits decides how long at first and at most. Works in browsers, too.
 */

export type Backoff = {
  readonly firstMs: number
  readonly longestMs?: number
  /** The least share of the wait, to which up to a half is added: what failed together is not repeated together. Default: no jitter. */
  readonly jitterFrom?: number
}

/** Returns the wait in milliseconds. `failures`: how often it has failed in a row, from 1. `random`: from 0 up to, but not including, 1. */
export function backoffMs(
  failures: number,
  { firstMs, longestMs = Infinity, jitterFrom }: Backoff,
  random: () => number = Math.random,
): number {
  const ms = Math.min(firstMs * 2 ** (failures - 1), longestMs)
  return jitterFrom === undefined ? ms : ms * (jitterFrom + random() / 2)
}

/** Reads a `Retry-After` header in both of its forms (RFC 9110, 10.2.3). Returns milliseconds from now; undefined if it is neither a number of seconds nor a date. */
export function retryAfterMs(value: string, now: number): number | undefined {
  if (isCount(value)) return Number(value) * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

export function isCount(text: string): boolean {
  return /^\s*\d+(\.\d+)?\s*$/.test(text)
}

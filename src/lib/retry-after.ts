/** Parses the `Retry-After` header, in both of its forms (RFC 9110, 10.2.3). */

/** Returns milliseconds from now; undefined if it is neither a number of seconds nor a date. */
export function retryAfterMs(value: string, now: number): number | undefined {
  if (isCount(value)) return Number(value) * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

export function isCount(text: string): boolean {
  return /^\s*\d+(\.\d+)?\s*$/.test(text)
}

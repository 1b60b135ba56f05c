/** The days and hours of a time zone: where the buckets of a time begin and end. */
import { Problem } from '../../contract/problem.ts'
import type { GetUsage } from '../../contract/usage.ts'
import { MAX_BUCKETS } from '../../contract/usage.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DEFAULT_DAYS = 30

/** Unix times in milliseconds, ascending, at least two: the first is `from`, the last `to`. Throws a `Problem`. Without `to`, `from` may be the time of an event of this millisecond, or of a clock that is ahead. */
export function bucketEdges({ from, to, tz, bucket }: GetUsage, now: number): number[] {
  const zone = new Zone(tz)
  const last = to === undefined ? now : timeOf(to, zone)
  const start = from === undefined ? zone.startOfDay(last - DEFAULT_DAYS * DAY_MS) : timeOf(from, zone)
  const end = to === undefined ? Math.max(start, now) : last
  if (start >= end && to !== undefined) throw new Problem('invalid_request', 'from must be before to.')
  if (!bucket) return [start, end]
  const bucketMs = bucket === 'day' ? DAY_MS : HOUR_MS
  if ((end - start) / bucketMs > MAX_BUCKETS)
    throw new Problem(
      'invalid_request',
      `There are more than ${MAX_BUCKETS} ${bucket}s from ${isoOf(start)} to ${isoOf(end)}; choose a shorter time${bucket === 'hour' ? ', or bucket=day' : ''}.`,
    )
  const edges = [start]
  for (let next = zone.next(start, bucket); next < end; next = zone.next(next, bucket)) edges.push(next)
  return [...edges, end]
}

const timeOf = (text: string, zone: Zone): number =>
  text.includes('T') ? Date.parse(text) : zone.startOf(Date.parse(`${text}T00:00:00Z`))

export const isoOf = (ms: number): string => new Date(ms).toISOString()

/** Local times are given as if they were in UTC, in milliseconds. */
class Zone {
  readonly #format: Intl.DateTimeFormat

  constructor(name: string) {
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, hourCycle: 'h23', second: 'numeric', ...numeric })
  }

  startOfDay(ms: number): number {
    const local = ms + this.#offset(ms)
    return this.startOf(local - modulo(local, DAY_MS))
  }

  next(ms: number, bucket: 'day' | 'hour'): number {
    return bucket === 'day' ? this.#nextDay(ms) : this.#nextHour(ms)
  }

  /** Returns the first moment of the day with this local midnight, which clocks may skip or repeat. */
  startOf(midnight: number): number {
    const offsets = [this.#offset(midnight - DAY_MS), this.#offset(midnight + DAY_MS)]
    const [early, late] = [midnight - Math.max(...offsets), midnight - Math.min(...offsets)]
    return early + this.#offset(early) >= midnight ? early : late
  }

  #nextDay(ms: number): number {
    const local = ms + this.#offset(ms)
    const midnight = local - modulo(local, DAY_MS)
    // A zone that changes the side of the date line skips a day.
    for (let days = 1; ; days++) {
      const next = this.startOf(midnight + days * DAY_MS)
      if (next > ms) return next
    }
  }

  #nextHour(ms: number): number {
    const next = ms + HOUR_MS
    const alignedHour = next - modulo(next + this.#offset(next), HOUR_MS)
    return alignedHour > ms ? alignedHour : next
  }

  #offset(ms: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day, hour, minute, second } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - (ms - modulo(ms, 1000))
  }
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by

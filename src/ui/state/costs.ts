/** What answers cost in the days in the time zone of the browser. */
import type { UsageReport } from '../../contract/usage.ts'
import type { QueryFor } from '../../client/client.ts'
import { serverNow } from './server-time.ts'
import { client } from './session.ts'

/** Returns the costs of so many days, the last of which is today. */
export function costsOf(days: number, query: QueryFor<'getUsage'>, signal: AbortSignal): Promise<UsageReport> {
  const tz = new Intl.DateTimeFormat().resolvedOptions().timeZone
  return client().usage({ ...query, tz, from: dateOf(startOf(days)) }, { signal })
}

/** Returns the times at which the days of this time begin, or the hours, RFC 3339. */
export function startsOf({ from, to }: UsageReport, isHourly: boolean): string[] {
  const starts: string[] = []
  const start = new Date(from)
  while (start < new Date(to)) {
    starts.push(start.toISOString())
    if (isHourly) start.setTime(start.getTime() + HOUR_MS)
    else start.setDate(start.getDate() + 1)
  }
  return starts
}

const HOUR_MS = 3_600_000

function startOf(days: number): Date {
  const start = new Date(serverNow())
  start.setDate(start.getDate() - days + 1)
  return start
}

const dateOf = (day: Date): string =>
  [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, '0')).join('-')

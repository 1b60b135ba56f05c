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

function startOf(days: number): Date {
  const start = new Date(serverNow())
  start.setDate(start.getDate() - days + 1)
  return start
}

const dateOf = (day: Date): string =>
  [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, '0')).join('-')

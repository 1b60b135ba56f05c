/** The time of the server: the clock of a browser may be wrong by days, and what an agent does is as old as the server says. */
import { signal } from '@preact/signals'
import type { UsageReport } from '../../contract/usage.ts'

/** The header has whole seconds. */
const EXACT_TO_MS = 5000

const offsetMs = signal(0)

export const serverNow = (): number => Date.now() + offsetMs.value

/** `fetch`, which learns the time from each response. */
export const timedFetch: typeof fetch = async (...request) => {
  const sentAt = Date.now()
  const response = await fetch(...request)
  const time = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(time)) return response
  // It was answered at some time in between: hours later, if the computer has slept.
  const [least, most] = [time - Date.now() - EXACT_TO_MS, time - sentAt + EXACT_TO_MS]
  const isPossible = (offset: number) => !(offset < least || offset > most)
  if (isPossible(0)) offsetMs.value = 0
  else if (!isPossible(offsetMs.peek())) offsetMs.value = time - sentAt
  return response
}

/** Returns the times at which the days of a report begin, or the hours, RFC 3339. */
export function startsOf({ from, to }: Pick<UsageReport, 'from' | 'to'>, isHourly: boolean): string[] {
  const starts: string[] = []
  const first = new Date(from)
  // A day without midnight begins an hour later, and the day after it does not.
  const startAt = (place: number) =>
    isHourly
      ? new Date(first.getTime() + place * HOUR_MS)
      : new Date(first.getFullYear(), first.getMonth(), first.getDate() + place)
  for (let start = first; start < new Date(to); start = startAt(starts.length)) starts.push(start.toISOString())
  return starts
}

const HOUR_MS = 3_600_000

/** The time of the server: the clock of a browser may be wrong by days, and what an agent does is as old as the server says. */
import { signal } from '@preact/signals'

/** The header has whole seconds, and a response takes a while. */
const EXACT_TO_MS = 5000

const offsetMs = signal(0)

export const serverNow = (): number => Date.now() + offsetMs.value

/** `fetch`, which learns the time from each response. */
export const timedFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request)
  const offset = Date.parse(response.headers.get('date') ?? '') - Date.now()
  if (Math.abs(offset - offsetMs.peek()) > EXACT_TO_MS) offsetMs.value = Math.abs(offset) > EXACT_TO_MS ? offset : 0
  return response
}

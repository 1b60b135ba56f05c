/** The time of the server: the clock of a browser may be wrong by days, and what an agent does is as old as the server says. */

/** The header has whole seconds, and a response takes a while. */
const EXACT_TO_MS = 5000

let offsetMs = 0

export const serverNow = (): number => Date.now() + offsetMs

/** `fetch`, which learns the time from each response. */
export const timedFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request)
  const offset = Date.parse(response.headers.get('date') ?? '') - Date.now()
  if (Math.abs(offset - offsetMs) > EXACT_TO_MS) offsetMs = Math.abs(offset) > EXACT_TO_MS ? offset : 0
  return response
}

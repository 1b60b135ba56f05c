/** Time limits that are to pass, in tests of what happens before and after. */
import { PATIENCE_S } from './patience.ts'

/**
 * Calls `attempt` with a time limit, and with twice as much as long as it returns false: the machine was too slow for what
 * is to happen before the limit. Resolves to what it returns then.
 */
export async function longEnough<T>(
  firstSeconds: number,
  attempt: (seconds: number) => Promise<T | false>,
): Promise<T> {
  for (let seconds = firstSeconds; seconds < PATIENCE_S; seconds *= 2) {
    const result = await attempt(seconds)
    if (result !== false) return result
  }
  throw new Error(`No time limit of less than ${PATIENCE_S} s is long enough.`)
}

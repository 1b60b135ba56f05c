/** Bounds a wait without ending what is waited for. */
import { setTimeout as delay } from 'node:timers/promises'

/** Whether the promise resolves within so many milliseconds; rejects when it rejects by then. */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController()
  const inTime = promise.then(() => true)
  const tooLate = delay(ms, false, { signal: timer.signal }).catch(() => false)
  return Promise.race([inTime, tooLate]).finally(() => timer.abort())
}

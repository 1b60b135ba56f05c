/** How long the client waits before it tries again: never longer than a bound. */
import { backoffMs } from '../../lib/backoff.ts'

/** The longest delay, also if the server asks for more in `Retry-After`. */
export const MAX_DELAY_MS = 8000
const BACKOFF = { firstMs: 250, longestMs: MAX_DELAY_MS, jitterFrom: 0.5 }

/** `failures`: how often it has failed in a row, from 1. At least half of the delay is waited. */
export const delayAfter = (failures: number, retryAfterMs = 0): number =>
  Math.min(Math.max(backoffMs(failures, BACKOFF), retryAfterMs), MAX_DELAY_MS)

/** Rejects with the reason of the signal. Works in browsers, unlike `node:timers/promises`. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const stop = () => {
      clearTimeout(timer)
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's own reason
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

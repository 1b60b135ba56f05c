/** How long the client waits before it tries again: exponential backoff with jitter, and never longer than a bound. */

const FIRST_DELAY_MS = 250
/** Also for what the server asks for in `Retry-After`. */
export const MAX_DELAY_MS = 8000

/** `failures`: how often it has failed in a row, from 1. At least half of the delay is waited. */
export function delayAfter(failures: number, retryAfterMs = 0): number {
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS)
  return Math.min(Math.max(delay * (0.5 + Math.random() / 2), retryAfterMs), MAX_DELAY_MS)
}

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

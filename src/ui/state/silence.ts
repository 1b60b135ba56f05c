/** Whether the server answers. A connection that is open says nothing of a server that was suspended, or of a disk that hangs. */
import { signal } from '@preact/signals'
import { serverNow, timedFetch } from './server-time.ts'

/**
 * A request that is not answered for `late` may never be: the server is asked for a sign of life then, which may take `sign`,
 * and again after `pause` until it gives one. In milliseconds.
 */
const WAITS_MS = { late: 5000, sign: 3000, pause: 1000 } as const

/** The time since when the server gives no sign of life, in milliseconds; undefined while it does. */
export const silentSince = signal<number | undefined>(undefined)

let isAsking = false

/** `fetch`, which notices that no answer comes. */
export function noticingSilence(baseUrl: string): typeof fetch {
  return async (...request) => {
    const sentAt = serverNow()
    const timer = setTimeout(() => void awaitSign(`${baseUrl}alive`, sentAt), WAITS_MS.late)
    try {
      return await timedFetch(...request)
    } finally {
      clearTimeout(timer)
    }
  }
}

async function awaitSign(url: string, sentAt: number): Promise<void> {
  if (isAsking) return
  isAsking = true
  while (!(await hasAnswered(url))) {
    silentSince.value ??= sentAt
    await new Promise((resolve) => setTimeout(resolve, WAITS_MS.pause))
  }
  silentSince.value = undefined
  isAsking = false
}

const hasAnswered = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(WAITS_MS.sign) }).then(
    () => true,
    () => false,
  )

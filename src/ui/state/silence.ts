/** Whether the server answers. A connection that is open says nothing about a server that was suspended. */
import { signal } from '@preact/signals'
import { BASE_URL } from './base-url.ts'
import { serverNow } from './server-time.ts'

/**
 * What has not come for `late` may never come: the server is asked for a sign of life then, which may take `sign`,
 * and again after `pause` until it gives one. In milliseconds.
 */
const WAITS_MS = { late: 5000, sign: 3000, pause: 1000 } as const

/** The time since when the server gives no sign of life, in milliseconds; undefined while it does. */
export const silentSince = signal<number | undefined>(undefined)

let isAsking = false

/** Returns what the server answers, or code that it serves, and notices if that takes long. */
export async function noticeSilence<T>(answer: Promise<T>): Promise<T> {
  const sentAt = serverNow()
  const timer = setTimeout(() => void awaitSign(sentAt), WAITS_MS.late)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}

async function awaitSign(sentAt: number): Promise<void> {
  if (isAsking) return
  isAsking = true
  while (!(await hasAnswered())) {
    silentSince.value ??= sentAt
    await new Promise((resolve) => setTimeout(resolve, WAITS_MS.pause))
  }
  silentSince.value = undefined
  isAsking = false
}

/** A proxy answers with 5xx for a server that does not. */
const hasAnswered = (): Promise<boolean> =>
  fetch(`${BASE_URL}alive`, { signal: AbortSignal.timeout(WAITS_MS.sign) }).then(
    ({ status }) => status < 500,
    () => false,
  )

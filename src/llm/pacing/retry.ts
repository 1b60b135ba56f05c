/** Decides when a failed request is retried: exponential backoff with jitter, and the provider's `Retry-After`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ErrorType } from '../../contract/events/status.ts'
import { backoffMs, isCount, retryAfterMs } from '../../lib/backoff.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

/** First wait in milliseconds; it doubles each time. */
export const RETRY_BASE_MS = 1000

/** The longest wait, for our own backoff and for a `Retry-After`: some providers request a day. */
export const MAX_WAIT_MS = 60_000

/** Rate limits are counted per minute: with the default of four retries, the waits add up to one. */
const RATE_LIMIT_FACTOR = 4

export type ReplyHeaders = { get(name: string): string | null }

export type RetryWait = {
  /** 0 for the first retry. */
  readonly attempt: number
  readonly type: ErrorType
  /** Headers of the failed response, if there was one. */
  readonly headers: ReplyHeaders | undefined
  readonly baseMs: number
}

export function retryWaitMs({ attempt, type, headers, baseMs }: RetryWait): number {
  const askedMs = headers && requestedWaitMs(headers)
  const firstMs = baseMs * (type === 'rate_limit' ? RATE_LIMIT_FACTOR : 1)
  const own = backoffMs(attempt + 1, { firstMs, jitterFrom: 0.5 })
  // Zero, and a time that has passed here, would use up all retries at once.
  return Math.min(askedMs || own, MAX_WAIT_MS)
}

/** `retry-after-ms` of Azure and OpenAI, or `Retry-After`. */
function requestedWaitMs(headers: ReplyHeaders): number | undefined {
  const ms = headers.get('retry-after-ms')
  if (ms !== null && isCount(ms)) return Number(ms)
  const after = headers.get('retry-after')
  return after === null ? undefined : retryAfterMs(after, Date.now())
}

/** Throws the signal's reason as soon as it is aborted. */
export async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(timerMs(ms), undefined, { signal })
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

/** Decides what follows from a failed attempt: the time of the next attempt, or that there is none. Pure. */
import { z } from 'zod'
import type { Backoff } from '../lib/backoff.ts'
import { backoffMs } from '../lib/backoff.ts'

/** The state from the first failure after a success. The backoff belongs to the callback, independent of the event. */
export const Failing = z.object({
  since: z.iso.datetime(),
  /** How long attempts have failed, in milliseconds; time while the server is down does not count. */
  for_ms: z.number().nonnegative(),
  /** Failures that count for the backoff. */
  attempts: z.int().nonnegative(),
  /** How often the current event was refused. */
  refusals: z.int().nonnegative(),
})
export type Failing = z.infer<typeof Failing>

export type FailureTiming = {
  readonly backoff: Backoff & { readonly longestMs: number }
  /** The longest accepted `Retry-After`. */
  readonly longestRetryAfterMs: number
  /** The time of failing without a success after which the callback is disabled. */
  readonly giveUpMs: number
}

export const FAILURE_TIMING: FailureTiming = {
  backoff: { firstMs: 1000, longestMs: 5 * 60_000, jitterFrom: 0.5 },
  longestRetryAfterMs: 60 * 60_000,
  giveUpMs: 24 * 60 * 60_000,
}

/** An event that is refused this often is skipped. */
export const MAX_REFUSALS = 8

/** Statuses that reject this event, rather than signal a failing receiver. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 415, 422])
const GONE = 410

export type Failure = {
  readonly at: number
  /** Time since the previous failure, unless the server was restarted in between. */
  readonly sinceLastMs: number | undefined
  readonly status?: number
  /** Requested by the receiver. */
  readonly retryAfterMs?: number
}

export type Verdict =
  | { readonly next: 'wait'; readonly ms: number; readonly failing: Failing }
  | { readonly next: 'skip'; readonly failing: Failing }
  | { readonly next: 'disable'; readonly reason: string; readonly failing: Failing }

/** `random`: from 0 up to, but not including, 1. */
export function afterFailure(
  before: Failing | undefined,
  { at, sinceLastMs = 0, status, retryAfterMs }: Failure,
  timing: FailureTiming,
  random: () => number = Math.random,
): Verdict {
  const { since, for_ms, attempts, refusals } = before ?? {
    since: new Date(at).toISOString(),
    for_ms: 0,
    attempts: 0,
    refusals: 0,
  }
  const isRefusal = status !== undefined && REFUSALS.has(status)
  const failing = {
    since,
    // The time in which the whole process was stopped, and nothing was attempted, does not count.
    for_ms: for_ms + (before ? Math.min(sinceLastMs, timing.longestRetryAfterMs) : 0),
    attempts: attempts + 1,
    refusals: refusals + (isRefusal ? 1 : 0),
  }
  if (status === GONE) return { next: 'disable', failing, reason: 'the receiver answered 410 Gone' }
  if (failing.for_ms >= timing.giveUpMs) {
    const hours = Math.round(timing.giveUpMs / 3_600_000)
    return { next: 'disable', failing, reason: `all attempts have failed for ${hours} hours` }
  }
  // The next event is a different one, to which the refusal does not apply, so it does not wait.
  if (isRefusal && failing.refusals >= MAX_REFUSALS)
    return { next: 'skip', failing: { ...failing, attempts: 0, refusals: 0 } }
  return { next: 'wait', failing, ms: waitMs(attempts, retryAfterMs, timing, random) }
}

function waitMs(
  attempts: number,
  retryAfterMs: number | undefined,
  { backoff, longestRetryAfterMs }: FailureTiming,
  random: () => number,
): number {
  if (retryAfterMs !== undefined) return Math.min(Math.max(retryAfterMs, backoff.firstMs), longestRetryAfterMs)
  return backoffMs(attempts + 1, backoff, random)
}

/** What follows from a failed attempt: when the next one is, or that there is none. Pure. */
import { z } from 'zod'

/** Kept from the first failure after a success on. The waits belong to the callback, whatever event it is at. */
export const Failing = z.object({
  since: z.iso.datetime(),
  /** How long attempts have failed, milliseconds: while the server is down nobody fails. */
  for_ms: z.number().nonnegative(),
  /** Failures that count for the next wait. */
  attempts: z.int().nonnegative(),
  /** How often the event that is its turn was refused. */
  refusals: z.int().nonnegative(),
})
export type Failing = z.infer<typeof Failing>

export type BackoffTiming = {
  readonly firstWaitMs: number
  readonly longestWaitMs: number
  /** What a receiver may ask for with `Retry-After`. */
  readonly longestAskedMs: number
  /** After so long of nothing but failures the callback is disabled. */
  readonly giveUpMs: number
}

export const BACKOFF: BackoffTiming = {
  firstWaitMs: 1000,
  longestWaitMs: 5 * 60_000,
  longestAskedMs: 60 * 60_000,
  giveUpMs: 24 * 60 * 60_000,
}

/** An event that is refused so often is passed over. */
export const MAX_REFUSALS = 8

/** These say that it is this event which the receiver does not want, and not that it is unwell. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 415, 422])
const GONE = 410

export type Failure = {
  readonly at: number
  /** Since the failure before it, unless the server was started in between. */
  readonly sinceLastMs: number | undefined
  readonly status?: number
  /** Asked for by the receiver. */
  readonly retryAfterMs?: number
}

export type Verdict =
  | { readonly next: 'wait'; readonly ms: number; readonly failing: Failing }
  | { readonly next: 'pass_over'; readonly failing: Failing }
  | { readonly next: 'disable'; readonly reason: string; readonly failing: Failing }

/** `random`: from 0 up to 1. */
export function afterFailure(
  before: Failing | undefined,
  { at, sinceLastMs = 0, status, retryAfterMs }: Failure,
  timing: BackoffTiming,
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
    for_ms: for_ms + (before ? sinceLastMs : 0),
    attempts: attempts + 1,
    refusals: refusals + (isRefusal ? 1 : 0),
  }
  if (status === GONE) return { next: 'disable', failing, reason: 'the receiver answered 410 Gone' }
  if (failing.for_ms >= timing.giveUpMs) {
    const hours = Math.round(timing.giveUpMs / 3_600_000)
    return { next: 'disable', failing, reason: `every attempt of ${hours} hours has failed` }
  }
  // The next event is another one: what was wrong with this says nothing of it, so it does not wait.
  if (isRefusal && failing.refusals >= MAX_REFUSALS)
    return { next: 'pass_over', failing: { ...failing, attempts: 0, refusals: 0 } }
  return { next: 'wait', failing, ms: waitMs(attempts, retryAfterMs, timing, random) }
}

function waitMs(
  attempts: number,
  askedMs: number | undefined,
  { firstWaitMs, longestWaitMs, longestAskedMs }: BackoffTiming,
  random: () => number,
): number {
  if (askedMs !== undefined) return Math.min(Math.max(askedMs, firstWaitMs), longestAskedMs)
  // Half of it is left to chance, so that callbacks which failed together do not come back together.
  return Math.min(firstWaitMs * 2 ** attempts, longestWaitMs) * (0.5 + random() / 2)
}

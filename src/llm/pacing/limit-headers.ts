/** Reads from the headers of a response how many requests and tokens the provider still allows, and until when. */
import type { ReplyHeaders } from './retry.ts'

/** `left` requests are allowed until the limits are reset in `resetMs`. */
export type Allowance = { readonly requestsLeft: number; readonly resetMs: number }

/** The names of OpenAI, Azure, Groq and xAI, and those of Anthropic. */
const LIMITS: readonly (readonly [remaining: string, reset: string])[] = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-reset'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-reset'],
]

/** `left` input tokens are allowed now, and all of `limit` in `resetMs`. The limit may be unknown. */
export type TokenAllowance = Allowance & { readonly limit: number | undefined }

/** Names of limits of input tokens, or of all tokens. */
const TOKEN_LIMITS: readonly (readonly [limit: string, remaining: string, reset: string])[] = [
  ['x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  [
    'anthropic-ratelimit-input-tokens-limit',
    'anthropic-ratelimit-input-tokens-remaining',
    'anthropic-ratelimit-input-tokens-reset',
  ],
  ['anthropic-ratelimit-tokens-limit', 'anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
]

/** Returns the limit with the fewest tokens left, or undefined. */
export function tokenAllowanceOf(headers: ReplyHeaders, now: number): TokenAllowance | undefined {
  let least: TokenAllowance | undefined
  for (const [limitName, remaining, reset] of TOKEN_LIMITS) {
    const remainingCount = numberIn(headers, remaining)
    if (!(remainingCount >= 0) || (least && least.requestsLeft <= remainingCount)) continue
    const limit = numberIn(headers, limitName)
    const resetMs = durationMs(headers.get(reset) ?? '', now)
    if (resetMs === undefined) continue
    least = {
      requestsLeft: remainingCount,
      limit: limit > remainingCount && Number.isFinite(limit) ? limit : undefined,
      resetMs,
    }
  }
  return least
}

/** Returns undefined without a limit. Of tokens it only matters here that none are left. */
export function allowanceOf(headers: ReplyHeaders, now: number): Allowance | undefined {
  let first: Allowance | undefined
  /** The longest of those that are spent. */
  let spentMs = -1
  for (const [remaining, reset] of LIMITS) {
    const remainingCount = numberIn(headers, remaining)
    if (!(remainingCount >= 0)) continue
    const resetMs = durationMs(headers.get(reset) ?? '', now)
    if (resetMs === undefined || (remainingCount > 0 && !remaining.includes('requests'))) continue
    first ??= { requestsLeft: Math.floor(remainingCount), resetMs }
    if (Math.floor(remainingCount) === 0) spentMs = Math.max(spentMs, resetMs)
  }
  return spentMs < 0 ? first : { requestsLeft: 0, resetMs: spentMs }
}

/** Returns NaN without the header. */
const numberIn = (headers: ReplyHeaders, name: string): number => Number(headers.get(name) ?? Number.NaN)

/** `1s`, `6m0s` and `120ms` are durations, `2026-01-31T12:00:00Z` is a time. */
function durationMs(text: string, now: number): number | undefined {
  if (text.length > 40 || text === '') return undefined
  const parts = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/.exec(text)
  if (parts) {
    const [hours = 0, minutes = 0, seconds = 0, ms = 0] = parts.slice(1).map((part) => Number(part ?? 0))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms
  }
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

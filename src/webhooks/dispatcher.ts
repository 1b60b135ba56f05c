/**
 * What the callbacks of all conversations share: the limit of concurrent requests, a single delivery attempt, and the
 * counters.
 */
import { Queue } from '../lib/queue.ts'
import { retryAfterMs } from '../lib/backoff.ts'
import { withinTime } from '../lib/bounded-wait.ts'
import { AddressRefused } from '../security/guarded-connector.ts'
import type { Lease } from '../storage/lease/lease.ts'
import type { SafeFetch } from '../security/safe-fetch.ts'
import { signWebhook } from '../security/webhook-signature.ts'
import type { FailureTiming } from './after-failure.ts'
import { FAILURE_TIMING } from './after-failure.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Credentials, DeliveryForm } from './callback-record.ts'
import { signingSecrets } from './callback-record.ts'

export type Outcome = 'delivered' | 'refused' | 'timeout' | 'network' | 'address'

/** One attempt and its outcome; `refused`: the status was not 2xx. */
export type Attempt = {
  readonly outcome: Outcome
  readonly at: number
  readonly durationMs: number
  readonly status?: number
  /** Absent if it was delivered. */
  readonly error?: string
  readonly retryAfterMs?: number
}

export type Message = {
  readonly url: string
  readonly credentials: Credentials
  /** The id of the event. */
  readonly id: string
  readonly body: string
}

export type DispatcherTiming = FailureTiming & {
  /** The time for one attempt, from the connection to the end of the response. */
  readonly timeoutMs: number
  /** How long progress may be in memory only. */
  readonly storeAfterMs: number
  /** The time without a matching event after which the cursor moves past the events that do not match. */
  readonly silenceMs: number
}

export type DispatcherStats = {
  readonly attempts: Readonly<Record<Outcome, number>>
  readonly active: number
  /** Age of the oldest event that an enabled callback has not delivered yet; 0 if there is none. */
  readonly oldestWaitingMs: number
}

export interface CallbackDispatcher {
  readonly timing: DispatcherTiming
  readonly makeBody: MakeBody
  /** Signs and sends the message in turn. Throws only the reason of the signal. */
  send(message: Message, signal: AbortSignal): Promise<Attempt>
  /** Returns why nothing would be sent to this URL now, as a clause. */
  refusal(url: string): Promise<string | undefined>
  /**
   * `waitingSince` returns the Unix time in milliseconds of the event being delivered. Returns an unsubscribe function.
   */
  watch(waitingSince: () => number | undefined): () => void
  stats(): DispatcherStats
  close(): Promise<void>
}

/**
 * Returns the body of the delivery for the event with this seq, in the format of a protocol; undefined if the protocol sends
 * nothing about it. Repeated attempts send the same body.
 */
export type MakeBody = (log: EventLog, form: DeliveryForm, seq: number) => Promise<string | undefined>

export type DispatcherOptions = {
  readonly fetch: SafeFetch
  readonly userAgent: string
  readonly timing?: Partial<DispatcherTiming>
  /** `name`: of a protocol; undefined for one that the server does not know. */
  readonly bodyOf?: (name: string) => Promise<MakeBody | undefined>
  /** Attempts begin only while it is held. */
  readonly lease?: Lease | undefined
}

/** Concurrent requests of all callbacks. */
const MAX_REQUESTS = 256
/** Concurrent requests per receiver, so that a slow one with many callbacks does not block all others. */
const MAX_REQUESTS_PER_RECEIVER = 16

const TIMING: DispatcherTiming = { ...FAILURE_TIMING, timeoutMs: 30_000, storeAfterMs: 1000, silenceMs: 15_000 }

export function createCallbackDispatcher({
  fetch,
  userAgent,
  lease,
  bodyOf,
  timing: givenTiming,
}: DispatcherOptions): CallbackDispatcher {
  const timing = { ...TIMING, ...givenTiming }
  const requests = new Queue({ limit: MAX_REQUESTS, perKey: MAX_REQUESTS_PER_RECEIVER })
  const attempts: Record<Outcome, number> = { delivered: 0, refused: 0, timeout: 0, network: 0, address: 0 }
  const watchedQueues = new Set<() => number | undefined>()

  const tryOnce = async ({ url, credentials, id, body }: Message, signal: AbortSignal): Promise<Attempt> => {
    if (lease?.isHeld === false) await lease.whenHeld(signal)
    const at = Date.now()
    const began = performance.now()
    const signedHeaders = signWebhook(signingSecrets(credentials), { id, body, now: at })
    const sentHeaders = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...credentials.headers,
      ...signedHeaders,
    }
    const post = (inTime: AbortSignal) => fetch.post(url, { headers: sentHeaders, body, signal: inTime })
    const outcome = await withinTime(timing.timeoutMs, signal, post).then(tellAnswer, (error: unknown) => {
      signal.throwIfAborted()
      return tellError(error, timing.timeoutMs)
    })
    return { ...outcome, at, durationMs: Math.round((performance.now() - began) * 10) / 10 }
  }

  return {
    timing,
    makeBody: async (log, form, seq) => await (await bodyOf?.(form.protocol))?.(log, form, seq),
    send: (message, signal) =>
      requests.run(
        async () => {
          const attempt = await tryOnce(message, signal)
          attempts[attempt.outcome]++
          return attempt
        },
        { key: new URL(message.url).origin, signal },
      ),
    refusal: (url) => fetch.refusal(url),
    watch(waitingSince) {
      // A separate function for each, even if one is watched twice.
      const own = () => waitingSince()
      watchedQueues.add(own)
      return () => watchedQueues.delete(own)
    },
    stats() {
      const since = [...watchedQueues].map((one) => one()).filter((one) => one !== undefined)
      const oldestWaitingMs = since.length ? Math.max(0, Date.now() - since.reduce((a, b) => Math.min(a, b))) : 0
      return { attempts: { ...attempts }, active: requests.active, oldestWaitingMs }
    },
    close: () => fetch.close(),
  }
}

type AttemptResult = Omit<Attempt, 'at' | 'durationMs'>

function tellAnswer({ status, retryAfter }: { status: number; retryAfter: string | undefined }): AttemptResult {
  if (status >= 200 && status < 300) return { outcome: 'delivered', status }
  const isRedirect = status >= 300 && status < 400
  const error = isRedirect ? `answered ${status}; redirects are not followed` : `answered ${status}`
  const askedMs = retryAfter === undefined ? undefined : retryAfterMs(retryAfter, Date.now())
  return { outcome: 'refused', status, error, ...(askedMs !== undefined && { retryAfterMs: askedMs }) }
}

/** Reports error codes in our own words: system messages may contain addresses that the client must not learn. */
function tellError(error: unknown, timeoutMs: number): AttemptResult {
  if (!(error instanceof Error)) return { outcome: 'network', error: 'the request failed' }
  if (error instanceof AddressRefused) {
    return { outcome: 'address', error: `${error.message}; the operator can allow it with OPENHANDS_CALLBACK_ALLOW` }
  }
  if (error.name === 'TimeoutError')
    return { outcome: 'timeout', error: `no complete answer within ${timeoutMs / 1000} s` }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return { outcome: 'network', error: ERRORS[code] ?? `the request failed (${code})` }
}

const ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  UND_ERR_SOCKET: 'the connection was closed before the answer was complete',
  UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be resolved',
}

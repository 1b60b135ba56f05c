/** The attempts of one request: which model is asked next after a failure, in which form, and after which wait. */
import type { ErrorType } from '../contract/events/status.ts'
import type { LlmRequest, LlmRetry } from './llm.ts'
import type { LlmError } from './errors/llm-error.ts'
import { OutOfTime } from './llm-errors.ts'
import type { RequestForms } from './provider.ts'
import { withMessages } from './request/request-parts.ts'
import type { ReplyHeaders } from './pacing/retry.ts'
import { retryWaitMs } from './pacing/retry.ts'
import type { ModelTarget, ModelTargets } from './targets.ts'

export type AttemptLimits = { readonly maxRetries: number; readonly baseMs: number }

export class Attempts {
  readonly #targets: ModelTargets
  readonly #request: LlmRequest
  readonly #messageCount: number
  readonly #limits: AttemptLimits
  readonly #forms = new Map<ModelTarget, RequestForms>()
  #at: number
  /** Waits so far; asking a fallback model needs none. */
  #waits = 0
  #failures = 0
  /** Fallback models that cannot be asked, by index: their names are wrong, for example. */
  readonly #unusable = new Set<number>()

  constructor(targets: ModelTargets, request: LlmRequest, limits: AttemptLimits) {
    this.#targets = targets
    this.#request = request
    this.#messageCount = request.messages.length
    this.#limits = limits
    this.#at = this.#firstFree(0) ?? 0
  }

  get current(): { readonly target: ModelTarget; readonly forms: RequestForms } {
    const target = this.#targets[this.#at] ?? this.#targets[0]
    const forms = this.#forms.get(target) ?? target.adapter.formsOf(withMessages(this.#request, this.#messageCount))
    this.#forms.set(target, forms)
    return { target, forms }
  }

  /** Chooses the next attempt. Returns undefined if no attempt is left. */
  next(error: unknown, failure: LlmError): LlmRetry | undefined {
    const { maxRetries, baseMs } = this.#limits
    const { type, message } = failure
    const headers = headersOf(error)
    const { target } = this.current
    const waitMs = Math.round(retryWaitMs({ attempt: this.#waits, type, headers, baseMs }))
    if (type === 'rate_limit') target.pace.limited(waitMs, headers)
    // The model itself was only limited: a mistake in a fallback must not end what would have gone well without it.
    const isUnusable = this.#at > 0 && ABOUT_MODEL.has(type)
    if (isUnusable) this.#unusable.add(this.#at)
    else if (!mayPass(error, failure)) return undefined
    const fallback = type === 'rate_limit' || isUnusable ? this.#firstFree(this.#at + 1) : undefined
    if (fallback === undefined && this.#waits++ >= maxRetries) return undefined
    this.#at = fallback ?? this.#firstFree(0) ?? 0
    const next = this.current.target
    return {
      kind: 'retry',
      type,
      message,
      retry: ++this.#failures,
      maxRetries: (maxRetries + 1) * this.#targets.length - 1,
      waitMs: fallback === undefined ? waitMs : 0,
      ...(next !== target && { nextModel: next.endpoint.model }),
    }
  }

  /** Returns the first model from this one on that was not overloaded recently. */
  #firstFree(from: number): number | undefined {
    for (let at = from; at < this.#targets.length; at++)
      if (!this.#targets[at]?.pace.isOverloaded && !this.#unusable.has(at)) return at
    return undefined
  }
}

/** Errors that another model at the same endpoint may not have. */
const ABOUT_MODEL: ReadonlySet<ErrorType> = new Set<ErrorType>(['config', 'auth', 'quota'])

/** A model that was still answering at the time limit would need as long again, and not finish either. */
function mayPass(error: unknown, failure: LlmError): boolean {
  return failure.retryable && !(error instanceof OutOfTime && failure.partial)
}

/** Checks for methods instead of the class: another `fetch` has another class of headers. */
function headersOf(error: unknown): ReplyHeaders | undefined {
  const headers = error instanceof Error && 'headers' in error ? error.headers : undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any implementation of `Headers` has `get`
  return typeof headers === 'object' && headers !== null && 'get' in headers ? (headers as ReplyHeaders) : undefined
}

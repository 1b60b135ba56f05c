/** A language model behind an HTTP endpoint: one request yields one answer, or an `LlmError`. */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import type { Usage } from '../contract/values/message.ts'
import { AnswerAssembly } from './answer/answer-assembly.ts'
import { readAnswer } from './answer/answer-stream.ts'
import { Attempts } from './attempts.ts'
import { ModelCatalog } from './catalog/model-catalog.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import { createIncrementalFold } from './request/growing-bytes.ts'
import type { Llm, LlmAnswer, LlmDelta, LlmPiece, LlmRequest, LlmRetry, ModelMessage } from './llm.ts'
import type { LlmError } from './errors/llm-error.ts'
import { CutAnswer, Interrupt } from './llm.ts'
import { isAboutRequest } from './error-rules.ts'
import { refusalOf, toLlmError } from './llm-errors.ts'
import { exchange, IDLE_TIMEOUT_MS } from './model-connection.ts'
import { Paces } from './pacing/paces.ts'
import type { Fetch } from './connection/pooled-fetch.ts'
import type { Dialects } from './provider.ts'
import { RETRY_BASE_MS, waitFor } from './pacing/retry.ts'
import type { ModelTarget, TargetDeps, ModelTargets } from './targets.ts'
import { targetsOf } from './targets.ts'
import type { VendorKeys } from './endpoints/vendor-keys.ts'

const DEFAULT_TIMEOUT_S = 600
const DEFAULT_RETRIES = 4

export type HttpLlmOptions = {
  readonly config: LlmConfig
  /** Redacts secrets in providers' error messages, and in logged payloads. The caller redacts deltas and answers. */
  readonly redact?: (text: string) => string
  /** Redacts an incomplete answer. */
  readonly redactCutOff?: (text: string) => string
  /** What is known about models. Default: nothing. */
  readonly catalog?: ModelCatalog
  /** Keeping it longer than the `Llm` saves learning the dialects again. Default: separate for each `Llm`. */
  readonly dialects?: Dialects
  /** Shared by all models of a server. Default: separate for each `Llm`. */
  readonly paces?: Paces
  /** Called with every body as sent, and the parsed content of every answer, as JSON. */
  readonly logPayload?: (payload: Payload) => void
  /** The keys of other vendors, for fallback models. Default: all models are asked at the same endpoint. */
  readonly vendorKeys?: VendorKeys | undefined
  /** Sends requests. Default: a separate connection pool. */
  readonly fetch?: Fetch
  readonly retryBaseMs?: number
  readonly idleTimeoutMs?: number
}

export type Payload = { readonly direction: 'request' | 'response'; readonly body: string }

/** Fields of an answer that may be incomplete. */
const SAID: ReadonlySet<string> = new Set(['text', 'reasoning', 'arguments'])

/** Opens no connection and never throws: `stream` throws configuration errors, like all others. */
export class HttpLlm implements Llm {
  readonly model: string
  readonly #options: HttpLlmOptions
  readonly #redact: (text: string) => string
  readonly #deps: TargetDeps
  readonly #idsOf = createIncrementalFold(() => new Set<string>(), addIds)
  /** The tokens that counted as input of the last answered request, and its messages. */
  #last: { readonly messages: LlmRequest['messages']; readonly tokens: number } | undefined
  /** Computed on first use: `endpointOf` may throw. */
  #targets: ModelTargets | undefined

  constructor(options: HttpLlmOptions) {
    this.model = options.config.model ?? ''
    this.#options = options
    this.#redact = options.redact ?? ((text) => text)
    const { catalog = new ModelCatalog(), dialects = new Map<string, object>(), paces = new Paces() } = options
    this.#deps = { catalog, dialects, paces, fetch: options.fetch, vendorKeys: options.vendorKeys }
  }

  /** Makes attempts until one yields an answer or must not be repeated. */
  async *stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<LlmDelta, LlmAnswer> {
    const { config, retryBaseMs: baseMs = RETRY_BASE_MS } = this.#options
    const targets = (this.#targets ??= targetsOf(config, this.#deps))
    const attempts = new Attempts(targets, request, { maxRetries: config.num_retries ?? DEFAULT_RETRIES, baseMs })
    const takenIds = request.takenIds ?? this.#idsOf(request.messages)
    for (;;) {
      signal.throwIfAborted()
      const { target, forms } = attempts.current
      const answer = new AnswerAssembly({
        model: target.endpoint.model,
        provider: target.endpoint.provider,
        takenIds,
        costOf: (usage, sentTokens) => this.#deps.catalog.costOf(target.config, usage, sentTokens),
      })
      let wasShown = false
      let retry: LlmRetry | undefined
      // The next request of the same conversation is about as large as the last one.
      const turn = target.pace.start(signal, this.#last?.messages === request.messages ? this.#last.tokens : 0)
      if (turn) await turn
      try {
        const deltas = await this.#attempt(target, forms.body, answer, signal)
        for await (const delta of deltas) {
          wasShown = true
          yield delta
        }
        signal.throwIfAborted()
        const whole = answer.finish()
        forms.keep()
        this.#last = { messages: request.messages, tokens: limitedTokensOf(whole.usage, target.endpoint) }
        this.#deps.catalog.learnFrom(target.config, target.endpoint, this.#deps.fetch)
        return whole
      } catch (error) {
        if (signal.aborted) throw endOf(answer, signal)
        const refusal = wasShown ? undefined : refusalOf(error)
        if (refusal && isAboutRequest(refusal) && forms.next(refusal.message)) continue
        const failure = this.#failureOf(error, target, answer)
        retry = attempts.next(error, failure)
        if (!retry) throw failure
      } finally {
        target.pace.end()
      }
      yield retry
      await waitFor(retry.waitMs, signal)
    }
  }

  #failureOf(error: unknown, { endpoint, adapter }: ModelTarget, answer: AnswerAssembly): LlmError {
    const partial = answer.partial()
    return toLlmError(error, { endpoint, api: adapter.title, redact: this.#redact, partial })
  }

  async #attempt(
    { post, adapter, pace }: ModelTarget,
    body: Buffer,
    answer: AnswerAssembly,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<LlmPiece, void>> {
    const { config, idleTimeoutMs, logPayload } = this.#options
    const texts = exchange({
      post: await post(),
      body,
      timeoutMs: (config.timeout ?? DEFAULT_TIMEOUT_S) * 1000,
      idleMs: idleTimeoutMs ?? IDLE_TIMEOUT_MS,
      signal,
      onResponse: (headers) => pace.accepted(headers),
      isOver: () => answer.hasEnded,
    })
    const deltas = readAnswer(texts, answer, adapter.createReader())
    return logPayload ? this.#logged(deltas, body, answer, logPayload) : deltas
  }

  async *#logged(
    deltas: AsyncIterable<LlmPiece>,
    body: Buffer,
    answer: AnswerAssembly,
    log: (payload: Payload) => void,
  ): AsyncGenerator<LlmPiece, void> {
    const redact = this.#redact
    const redactCutOff = this.#options.redactCutOff ?? redact
    log({ direction: 'request', body: redact(body.toString()) })
    let failure: string | undefined
    try {
      yield* deltas
    } catch (error) {
      failure = String(error)
      throw error
    } finally {
      // Log the assembled answer, not the chunks: a secret may be split over several chunks, where it would not be
      // redacted.
      const redactPart = (name: string, text: string) =>
        failure !== undefined && SAID.has(name) ? redactCutOff(text) : redact(text)
      const response = JSON.stringify({ ...answer.soFar(), error: failure }, (name, value: unknown) =>
        typeof value === 'string' ? redactPart(name, value) : value,
      )
      log({ direction: 'response', body: response })
    }
  }
}

/** Returns what an aborted request throws. */
function endOf(answer: AnswerAssembly, { reason }: AbortSignal): unknown {
  const partial = reason instanceof Interrupt ? answer.partial() : undefined
  return partial ? new CutAnswer(partial) : reason
}

/** Anthropic does not limit what is read from its cache. */
function limitedTokensOf({ input_tokens, cached_tokens }: Usage, { provider }: Endpoint): number {
  return provider === 'anthropic' ? input_tokens - cached_tokens : input_tokens
}

function addIds(ids: Set<string>, message: ModelMessage): Set<string> {
  if (message.role === 'assistant') for (const { id } of message.toolCalls) ids.add(id)
  return ids
}

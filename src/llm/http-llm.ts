/** A language model behind an HTTP endpoint: one request yields one answer, or an `LlmError`. */
import type { LlmConfig } from '../contract/llm-config.ts'
import { MAX_COST_USD } from '../contract/message.ts'
import type { Usage } from '../contract/message.ts'
import { AnswerAssembly } from './answer/answer-assembly.ts'
import { readAnswer } from './answer/answer-stream.ts'
import { endpointOf } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { createIncrementalFold } from './incremental-fold.ts'
import type { Llm, LlmAnswer, LlmDelta, LlmError, LlmPiece, LlmRequest, ModelMessage } from './llm.ts'
import { OutOfTime, refusalOf, toLlmError } from './llm-errors.ts'
import { exchange, IDLE_TIMEOUT_MS } from './model-connection.ts'
import type { Post } from './model-connection.ts'
import type { Fetch } from './pooled-fetch.ts'
import type { Dialects, Speaker } from './provider.ts'
import { speakerOf } from './providers.ts'
import type { ReplyHeaders } from './retry.ts'
import { RETRY_BASE_MS, retryWaitMs, waitFor } from './retry.ts'

const DEFAULT_TIMEOUT_S = 600
const DEFAULT_RETRIES = 4

export type HttpLlmOptions = {
  readonly config: LlmConfig
  /** Redacts secrets in providers' error messages, and in logged payloads. The caller redacts deltas and answers. */
  readonly redact?: (text: string) => string
  /** Redacts an incomplete answer. */
  readonly redactCutOff?: (text: string) => string
  /** Keeping it longer than the `Llm` saves learning the dialects again. Default: separate for each `Llm`. */
  readonly dialects?: Dialects
  /** Called with every body as sent, and the parsed content of every answer, as JSON. */
  readonly logPayload?: (payload: Payload) => void
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
  readonly #dialects: Dialects
  readonly #idsOf = createIncrementalFold(() => new Set<string>(), addIds)
  #target: Target | undefined

  constructor(options: HttpLlmOptions) {
    this.model = options.config.model ?? ''
    this.#options = options
    this.#redact = options.redact ?? ((text) => text)
    this.#dialects = options.dialects ?? new Map<string, object>()
  }

  /** Makes attempts until one yields an answer or must not be repeated. */
  async *stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<LlmDelta, LlmAnswer> {
    const { config, fetch } = this.#options
    const maxRetries = config.num_retries ?? DEFAULT_RETRIES
    const target = (this.#target ??= targetOf(config, this.#dialects, fetch))
    const { endpoint, speaker } = target
    const takenIds = this.#idsOf(request.messages)
    const forms = speaker.formsOf(request)
    let retries = 0
    for (;;) {
      signal.throwIfAborted()
      const answer = new AnswerAssembly({ model: endpoint.model, takenIds, costOf: (usage) => costOf(config, usage) })
      let wasShown = false
      try {
        const deltas = await this.#attempt(target, forms.body, answer, signal)
        for await (const delta of deltas) {
          wasShown = true
          yield delta
        }
        signal.throwIfAborted()
        const whole = answer.finish()
        forms.keep()
        return whole
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (!wasShown && forms.next(refusalOf(error)?.message ?? '')) continue
        const failure = toLlmError(error, {
          endpoint,
          api: speaker.title,
          redact: this.#redact,
          partial: answer.partial(),
        })
        if (retries >= maxRetries || !mayPass(error, failure)) throw failure
        const wait = this.#waitMs(error, failure, retries++)
        const { type, message } = failure
        yield { kind: 'retry', type, message, retry: retries, maxRetries, waitMs: Math.round(wait) }
        await waitFor(wait, signal)
      }
    }
  }

  async #attempt(
    { post, speaker }: Target,
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
      isOver: () => answer.hasEnded,
    })
    const deltas = readAnswer(texts, answer, speaker.createReader())
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

  #waitMs(error: unknown, { type }: LlmError, attempt: number): number {
    const baseMs = this.#options.retryBaseMs ?? RETRY_BASE_MS
    return retryWaitMs({ attempt, type, headers: headersOf(error), baseMs })
  }
}

/** The resolved configuration, computed on first use. */
type Target = {
  readonly endpoint: Endpoint
  readonly speaker: Speaker
  readonly post: () => Promise<Post>
}

function targetOf(config: LlmConfig, dialects: Dialects, fetch: Fetch | undefined): Target {
  const endpoint = endpointOf(config)
  const speaker = speakerOf(config, endpoint, dialects)
  let post: Promise<Post> | undefined
  return { endpoint, speaker, post: () => (post ??= speaker.connect(fetch)) }
}

/** A model that was still answering at the time limit would need as long again, and not finish either. */
function mayPass(error: unknown, failure: LlmError): boolean {
  return failure.retryable && !(error instanceof OutOfTime && failure.partial)
}

function addIds(ids: Set<string>, message: ModelMessage): Set<string> {
  if (message.role === 'assistant') for (const { id } of message.toolCalls) ids.add(id)
  return ids
}

/** Without both prices there is no cost: half a price would be mistaken for the whole. Cached tokens count in full. */
function costOf({ input_cost_per_token: input, output_cost_per_token: output }: LlmConfig, usage: Usage) {
  if (input === undefined || output === undefined) return undefined
  return Math.min(usage.input_tokens * input + usage.output_tokens * output, MAX_COST_USD)
}

/** Checks for methods instead of the class: another `fetch` has another class of headers. */
function headersOf(error: unknown): ReplyHeaders | undefined {
  const headers = error instanceof Error && 'headers' in error ? error.headers : undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any implementation of `Headers` has `get`
  return typeof headers === 'object' && headers !== null && 'get' in headers ? (headers as ReplyHeaders) : undefined
}

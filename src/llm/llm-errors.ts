/** Converts every failure of a model request to an `LlmError`: classified, with advice, and safe to show. */
import { MASK } from '../contract/values/llm-config.ts'
import { EventTooLarge } from '../lib/sse-decoder.ts'
import { CutShort, NotAnAnswer, UpstreamFailure } from './answer/answer-assembly.ts'
import { AnswerTooLarge } from './answer/answer-limits.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import { judge, refusesTools } from './error-rules.ts'
import type { ProviderRefusal } from './error-rules.ts'
import { LlmError } from './errors/llm-error.ts'
import type { LlmAnswer } from './llm.ts'

/** Upstream text shown; anything longer is a page of HTML or the echo of a request. */
const MAX_UPSTREAM_CHARS = 500

/** Upstream text examined. Much longer than what is shown: a secret that is cut off would not be redacted. */
const MAX_READ_CHARS = 64 * 1024

export type ErrorContext = {
  readonly endpoint: Endpoint
  /** The name of the provider's API. */
  readonly api: string
  /** Redacts secrets in upstream text. */
  readonly redact: (text: string) => string
  readonly partial: LlmAnswer | undefined
}

const MAX_CODE_CHARS = 200

/** The request took too long, or the connection was silent for too long; the message is ours and safe to show. */
export class TimedOut extends Error {}

/** The time limit of the whole request has passed. */
export class OutOfTime extends TimedOut {}

export function toLlmError(error: unknown, context: ErrorContext): LlmError {
  const { endpoint, partial } = context
  if (error instanceof LlmError) return error
  if (error instanceof TimedOut) {
    return new LlmError('network', error.message, { retryable: true, partial })
  }
  if (error instanceof CutShort) {
    const message = `The connection to ${originOf(endpoint)} broke before the model had finished.`
    return new LlmError('network', message, { retryable: true, partial, cause: error })
  }
  if (error instanceof AnswerTooLarge || error instanceof EventTooLarge) {
    const message = `The answer of ${originOf(endpoint)} exceeds a limit of this server: ${error.message}.`
    // Nothing of it is kept: that is the purpose of the limit.
    return new LlmError('network', message, { cause: error })
  }
  if (error instanceof NotAnAnswer) {
    const message = `${originOf(endpoint)} is not a ${context.api} endpoint: check llm_config.base_url.`
    return new LlmError('config', withUpstream(message, 200, error.message, context))
  }
  const refusal = refusalOf(error)
  if (refusal) return fromRefusal(refusal, context)
  const code = codeOf(error)
  if (code !== '' || isWithoutReply(error) || isNotHttp(error)) {
    return fromConnection(error, code, context)
  }
  // The message is not shown: its content is unknown.
  const name = error instanceof Error ? error.name : typeof error
  return new LlmError('internal', `The model's answer could not be read (${name}).`, { partial, cause: error })
}

/** Returns the provider's refusal, if there is one. */
export function refusalOf(error: unknown): ProviderRefusal | undefined {
  if (error instanceof UpstreamFailure) return readRefusal(0, error.error)
  const { status, error: body, message } = fields(error)
  if (typeof status !== 'number') return undefined
  return readRefusal(status, innerError(body) ?? plainText(String(message), status))
}

/** The SDK of Anthropic keeps the whole body: `{ type: 'error', error: … }`. */
function innerError(body: unknown): unknown {
  const { type, error } = fields(body)
  return type === 'error' && typeof error === 'object' && error !== null ? error : body
}

function readRefusal(httpStatus: number, body: unknown): ProviderRefusal {
  const { code, type, status } = fields(Array.isArray(body) ? body[0] : body)
  const inner = fields(fields(Array.isArray(body) ? body[0] : undefined)['error'])
  const numeric = Number(code ?? inner['code'])
  return {
    status: httpStatus || (numeric >= 400 && numeric < 600 ? numeric : 0),
    code: [code, type, status, inner['status']]
      .filter((part) => typeof part === 'string')
      .map((part) => part.slice(0, MAX_CODE_CHARS))
      .join(' '),
    message: messageOf(body).slice(0, MAX_READ_CHARS),
  }
}

/** Finds the message in an error body. OpenRouter wraps the upstream provider's message in `metadata.raw`. */
function messageOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (Array.isArray(body)) return body.map(messageOf).filter(Boolean).join('; ')
  const { message, error, errors, detail, msg, metadata } = fields(body)
  const sentence =
    [message, error, errors, detail, msg].map((part) => (part ? messageOf(part) : '')).find(Boolean) ?? ''
  const raw = fields(metadata)['raw']
  return typeof raw === 'string' && raw !== '' ? `${sentence}: ${raw}` : sentence
}

/** The SDK puts a body that is not JSON into its message, after the status. Only the title of a page is useful. */
function plainText(message: string, status: number): string {
  const start = `${status} `
  const text = (message.startsWith(start) ? message.slice(start.length) : message).trim()
  if (text === 'status code (no body)') return ''
  return text.startsWith('<') ? (/<title>([^<]*)/i.exec(text)?.[1] ?? '') : text
}

function fromRefusal(refusal: ProviderRefusal, context: ErrorContext): LlmError {
  const { type, retryable, advice } = judge(refusal)
  const { endpoint, api, partial } = context
  const sentence = advice
    .replace('{model}', () => endpoint.model)
    .replace('{url}', () => withoutUser(endpoint))
    .replace('{api}', () => api)
  const message = withUpstream(sentence, refusal.status, refusal.message, context)
  const isUnauthorized = refusal.status === 401
  return new LlmError(type, message, { retryable, partial, lacksTools: refusesTools(refusal), isUnauthorized })
}

function withUpstream(sentence: string, status: number, upstream: string, context: ErrorContext): string {
  const safeUpstream = safeText(upstream, context)
  const where = status > 0 ? ` (HTTP ${status})` : ''
  return safeUpstream === ''
    ? `${sentence}${where && ` The answer was HTTP ${status}.`}`
    : `${sentence} It said${where}: ${safeUpstream}`
}

/** Validation errors repeat the refused request, from `input` on; the headers contain the key. */
function safeText(text: string, { endpoint, redact }: ErrorContext): string {
  const own = Object.entries(endpoint.headers)
    .filter(([name]) => !['accept', 'anthropic-version', 'content-type', 'user-agent'].includes(name))
    .map(([, value]) => value.replace(/^Bearer /, ''))
    .filter((value) => value.length > 3)
  const maskedText = own.reduce((all, secret) => all.replaceAll(secret, MASK), text.slice(0, MAX_READ_CHARS))
  const short = withoutInput(redact(maskedText).replaceAll(/\s+/g, ' ').trim())
  return short.length > MAX_UPSTREAM_CHARS ? `${short.slice(0, MAX_UPSTREAM_CHARS)}…` : short
}

/** No pattern here may begin with an optional part: each position in a long run of spaces would be a possible start. */
function withoutInput(text: string): string {
  const at = text.search(/['"]input['"] ?:/)
  return at < 0 ? text : `${text.slice(0, at).trimEnd().replace(/,$/, '')} …`
}

function fromConnection(error: unknown, code: string, { endpoint, partial }: ErrorContext): LlmError {
  const origin = originOf(endpoint)
  if (code === 'ECONNREFUSED') {
    const message = `Nothing listens at ${origin}: check llm_config.base_url, and that the model server runs.`
    return new LlmError('network', message, { retryable: true, partial, cause: error })
  }
  if (code === 'EAI_AGAIN') {
    const message = `The host ${new URL(endpoint.baseUrl).hostname} cannot be looked up, because no name server answers: check the network.`
    return new LlmError('network', message, { retryable: true, partial, cause: error })
  }
  if (code === 'ENOTFOUND') {
    const message = `The host ${new URL(endpoint.baseUrl).hostname} does not exist: check llm_config.base_url and the network.`
    return new LlmError('network', message, { retryable: true, partial, cause: error })
  }
  // Errors of the connector that enforces the operator's rules.
  if (code === 'ENDPOINT_REFUSED' || code === 'ADDRESS_REFUSED') {
    const message = `Nothing is sent to ${origin}: ${innermostMessage(error)}. Use another llm_config.base_url, or ask the operator to allow it with OPENHANDS_LLM_ALLOW.`
    return new LlmError('config', message, { cause: error })
  }
  if (/CERT|SSL|TLS|EPROTO|SELF_SIGNED|UNABLE_TO_/.test(code)) {
    const message = `The secure connection to ${origin} failed (${code}): check llm_config.base_url and the certificate there.`
    return new LlmError('config', message, { cause: error })
  }
  const isUnsent = code === '' || code === 'UND_ERR_INVALID_ARG'
  if (isUnsent && /header|credentials|parse url|invalid url/i.test(innermostMessage(error))) {
    // The message of such an error quotes the header or the URL, including the key: neither show it nor keep it as the
    // cause.
    const message =
      'The request cannot be written: check the characters in llm_config.api_key, llm_config.extra_headers and llm_config.base_url.'
    return new LlmError('config', message)
  }
  const message = `The connection to ${origin} failed${code === '' ? '' : ` (${code})`}.`
  return new LlmError('network', message, { retryable: true, partial, cause: error })
}

/** undici's error for an answer that stops being HTTP, such as a chunk without a size. It has no code. */
const isNotHttp = (error: unknown): boolean => error instanceof Error && error.name === 'HTTPParserError'

/** The SDK's error for a request without a response is the one that has no status; its class names are not reliable. */
function isWithoutReply(error: unknown): boolean {
  return error instanceof Error && 'requestID' in error && fields(error)['status'] === undefined
}

/** Returns the error code of the system or of a decoder (`ZSTD_error_…`), from anywhere in the chain of causes. */
function codeOf(error: unknown): string {
  for (let at = fields(error), depth = 0; depth < 8; depth++) {
    const { code, cause, errors } = at
    if (typeof code === 'string' && /^[A-Z][A-Z0-9]*(_\w+)?$/.test(code)) return code
    at = fields(cause ?? (Array.isArray(errors) ? errors[0] : undefined))
  }
  return ''
}

function innermostMessage(error: unknown): string {
  let at = error
  for (let depth = 0; depth < 8 && at instanceof Error && at.cause !== undefined; depth++) at = at.cause
  return at instanceof Error ? at.message : ''
}

function originOf({ baseUrl }: Endpoint): string {
  return new URL(baseUrl).origin
}

function withoutUser({ baseUrl }: Endpoint): string {
  const { origin, pathname } = new URL(baseUrl)
  return origin + pathname
}

/** Errors come from the SDK, from fetch and from servers: nothing about their shape is certain. */
function fields(value: unknown): Readonly<Record<string, unknown>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field is checked where it is used
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

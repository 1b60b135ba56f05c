/** Every failure on the way to a model, as an `LlmError`: classified, saying what to do, and safe to show. */
import { MASK } from '../contract/llm-config.ts'
import { EventTooLarge } from '../lib/sse-decoder.ts'
import { CutShort, NotAnAnswer, UpstreamFailure } from './answer/answer-assembly.ts'
import { AnswerTooLarge } from './answer/answer-limits.ts'
import type { Endpoint } from './endpoint.ts'
import { judge, refusesTools } from './error-rules.ts'
import type { ProviderRefusal } from './error-rules.ts'
import { LlmError } from './llm.ts'
import type { LlmAnswer } from './llm.ts'

/** Upstream text that is shown; what is longer is a page of HTML or the echo of a request. */
const MAX_UPSTREAM_CHARS = 500

/** Upstream text that is looked at. Much longer than what is shown: a secret that is cut off is not found. */
const MAX_READ_CHARS = 64 * 1024

export type ErrorContext = {
  readonly endpoint: Endpoint
  /** Takes secrets out of upstream text. */
  readonly redact: (text: string) => string
  readonly partial: LlmAnswer | undefined
}

const MAX_CODE_CHARS = 200

/** The request took longer, or was silent for longer, than it may; the message is ours and safe to show. */
export class TimedOut extends Error {}

/** The time that a whole request may take is up. */
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
    const message = `The answer of ${originOf(endpoint)} is beyond what this server reads: ${error.message}.`
    // Nothing of it is kept: that is what the limit is for.
    return new LlmError('network', message, { cause: error })
  }
  if (error instanceof NotAnAnswer) {
    const message = `What answers at ${originOf(endpoint)} is no Chat Completions endpoint: check llm_config.base_url.`
    return new LlmError('config', withUpstream(message, 200, error.message, context))
  }
  const refusal = refusalOf(error)
  if (refusal) return fromRefusal(refusal, context)
  const code = codeOf(error)
  if (code !== '' || isWithoutReply(error)) {
    return fromConnection(error, code, context)
  }
  // Nothing of the message is shown: it is not known what is in it.
  const name = error instanceof Error ? error.name : typeof error
  return new LlmError('internal', `The model's answer could not be read (${name}).`, { partial, cause: error })
}

/** What the provider said, where it said something. */
export function refusalOf(error: unknown): ProviderRefusal | undefined {
  if (error instanceof UpstreamFailure) return readRefusal(0, error.error)
  const { status, error: body, message } = fields(error)
  if (typeof status !== 'number') return undefined
  return readRefusal(status, body ?? plainText(String(message), status))
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

/** Finds the sentence in an error body. OpenRouter wraps what the provider behind it said into `metadata.raw`. */
function messageOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (Array.isArray(body)) return body.map(messageOf).filter(Boolean).join('; ')
  const { message, error, detail, msg, metadata } = fields(body)
  const sentence = [message, error, detail, msg].map((part) => (part ? messageOf(part) : '')).find(Boolean) ?? ''
  const raw = fields(metadata)['raw']
  return typeof raw === 'string' && raw !== '' ? `${sentence}: ${raw}` : sentence
}

/** The SDK puts a body that is no JSON into its message, after the status. Of a page only the title says anything. */
function plainText(message: string, status: number): string {
  const text = message.replace(new RegExp(`^${status} `), '').trim()
  if (text === 'status code (no body)') return ''
  return text.startsWith('<') ? (/<title>([^<]*)/i.exec(text)?.[1] ?? '') : text
}

function fromRefusal(refusal: ProviderRefusal, context: ErrorContext): LlmError {
  const { type, retryable, advice } = judge(refusal)
  const { endpoint, partial } = context
  const sentence = advice.replace('{model}', () => endpoint.model).replace('{url}', () => withoutUser(endpoint))
  const message = withUpstream(sentence, refusal.status, refusal.message, context)
  return new LlmError(type, message, { retryable, partial, lacksTools: refusesTools(refusal) })
}

function withUpstream(sentence: string, status: number, upstream: string, context: ErrorContext): string {
  const said = safeText(upstream, context)
  const where = status > 0 ? ` (HTTP ${status})` : ''
  return said === ''
    ? `${sentence}${where && ` The answer was HTTP ${status}.`}`
    : `${sentence} It said${where}: ${said}`
}

/** Validation errors repeat what they refuse, from `input` on; the headers are where the key is. */
function safeText(text: string, { endpoint, redact }: ErrorContext): string {
  const own = Object.entries(endpoint.headers)
    .filter(([name]) => !['accept', 'content-type', 'user-agent'].includes(name))
    .map(([, value]) => value.replace(/^Bearer /, ''))
    .filter((value) => value.length > 3)
  const hidden = own.reduce((all, secret) => all.replaceAll(secret, MASK), text.slice(0, MAX_READ_CHARS))
  const short = withoutInput(redact(hidden).replaceAll(/\s+/g, ' ').trim())
  return short.length > MAX_UPSTREAM_CHARS ? `${short.slice(0, MAX_UPSTREAM_CHARS)}…` : short
}

/** No pattern may begin with an optional part here: each place of a long run of spaces would be a start of its own. */
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
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    const message = `There is no host ${new URL(endpoint.baseUrl).hostname}: check llm_config.base_url and the network.`
    return new LlmError('network', message, { retryable: true, partial, cause: error })
  }
  // Of the connector that the operator's rules are kept by.
  if (code === 'ENDPOINT_REFUSED' || code === 'ADDRESS_REFUSED') {
    const message = `Nothing is sent to ${origin}: ${innermostMessage(error)}. Use another llm_config.base_url, or ask the operator to allow it with OPENHANDS_LLM_ALLOW.`
    return new LlmError('config', message, { cause: error })
  }
  if (/CERT|SSL|TLS|EPROTO|SELF_SIGNED|UNABLE_TO_/.test(code)) {
    const message = `No secure connection to ${origin} (${code}): check llm_config.base_url and the certificate there.`
    return new LlmError('config', message, { cause: error })
  }
  const isUnsent = code === '' || code === 'UND_ERR_INVALID_ARG'
  if (isUnsent && /header|credentials|parse url|invalid url/i.test(innermostMessage(error))) {
    // The message of such an error quotes the header or the URL, key and all: neither shown nor kept as the cause.
    const message =
      'The request cannot be written: check the characters in llm_config.api_key, extra_headers, base_url.'
    return new LlmError('config', message)
  }
  const message = `The connection to ${origin} failed${code === '' ? '' : ` (${code})`}.`
  return new LlmError('network', message, { retryable: true, partial, cause: error })
}

/** The SDK's error for a request that got no reply is the one that has no status; the names of its classes say nothing. */
function isWithoutReply(error: unknown): boolean {
  return error instanceof Error && 'requestID' in error && fields(error)['status'] === undefined
}

/** The error code of the system or of a decoder (`ZSTD_error_…`), wherever in the chain of causes it is. */
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

/** Errors come from the SDK, from fetch and off the wire: nothing about their shape is certain. */
function fields(value: unknown): Readonly<Record<string, unknown>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field is checked where it is used
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

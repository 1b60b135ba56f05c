/**
 * Sends requests and repeats those that may be repeated: when the server starts or stops, when a connection is lost,
 * and when a limit is reached for a moment. The only file that calls `fetch`.
 */
import { faultOfHeaderValue } from '../../contract/values/http-header.ts'
import { AgentServerError, isGatewayStatus } from './agent-server-error.ts'
import { delayAfter, MAX_DELAY_MS, sleep } from './delay.ts'
import { connectionError, errorOf, redirectError } from './response-error.ts'
import { mistake, requireSignal, sendableHeaders } from './sendable.ts'

export type TransportOptions = {
  /** URL of the server, such as `https://agents.example.com`; can have a path. */
  readonly baseUrl: string | URL
  /** The master key, or an API key. */
  readonly apiKey?: string | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** How often a request is repeated, with backoff. Default: 5. */
  readonly maxRetries?: number | undefined
}

export type RequestContent =
  | string
  | Blob
  | ArrayBuffer
  | Uint8Array<ArrayBuffer>
  | FormData
  | ReadableStream<Uint8Array>

export type ApiRequest = {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: RequestContent | undefined
  readonly signal?: AbortSignal | undefined
  /** Whether the same request can be sent again if the outcome of the first is unknown. */
  readonly isRepeatable: boolean
  /** Default: the number of the client. */
  readonly maxRetries?: number
}

const DEFAULT_RETRIES = 5

export class Transport {
  readonly #baseUrl: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: typeof fetch
  readonly maxRetries: number

  constructor({ baseUrl, apiKey, fetch: own, headers = {}, maxRetries = DEFAULT_RETRIES }: TransportOptions) {
    // Errors of `fetch` about a header quote it.
    if (apiKey !== undefined && typeof apiKey !== 'string') throw mistake('apiKey must be a text.')
    if (apiKey !== undefined && faultOfHeaderValue(apiKey) !== undefined)
      throw mistake('apiKey has a character that cannot be sent in an HTTP header.')
    this.#baseUrl = checkedUrl(String(baseUrl)).replace(/(?<!\/)\/+$/, '')
    this.#headers = sendableHeaders(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }, headers)
    // Called without a receiver: browsers refuse to call `fetch` as a method of something else.
    this.#fetch = own ?? ((...args) => fetch(...args))
    this.maxRetries = maxRetries
  }

  /** Returns the absolute URL of a path with its query. */
  urlOf(path: string): string {
    return resolveUrl(this.#baseUrl + path).href
  }

  /**
   * Returns what `read` makes of a response with a status below 400. Throws an `AgentServerError`, or the reason of
   * the signal.
   */
  async send<T>(request: ApiRequest, read: (response: Response) => T | Promise<T>): Promise<T> {
    const { signal, maxRetries = this.maxRetries } = request
    requireSignal(signal)
    const sentRequest = { ...request, headers: sendableHeaders(this.#headers, request.headers) }
    for (let failures = 1; ; failures++) {
      try {
        return await this.#sendOnce(sentRequest, read)
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof AgentServerError) || failures > maxRetries || !mayRepeat(error, request, failures))
          throw error
        await sleep(delayAfter(failures, error.retryAfterMs), signal)
      }
    }
  }

  async #sendOnce<T>(
    { method, path, headers, body, signal }: ApiRequest,
    read: (response: Response) => T | Promise<T>,
  ): Promise<T> {
    const url = this.#baseUrl + path
    const response = await this.#fetch(url, {
      method,
      ...(headers && { headers }),
      // A redirected POST would become a GET, and succeed without having done anything.
      redirect: 'manual',
      ...(body !== undefined && { body }),
      ...(body instanceof ReadableStream && { duplex: 'half' }),
      ...(signal && { signal }),
    }).catch((error: unknown) => {
      throw connectionError(error, url)
    })
    if (isRedirect(response)) throw redirectError(response, url)
    if (response.status >= 400) throw await errorOf(response)
    return await read(response)
  }
}

/** Each request would otherwise be repeated in vain. In browsers a URL can be relative to that of the page. */
function checkedUrl(url: string): string {
  const parsedUrl = URL.canParse(url, pageUrl()) ? resolveUrl(url) : undefined
  if (parsedUrl && parsedUrl.username + parsedUrl.password !== '')
    throw mistake('baseUrl must not have a user or a password. Pass apiKey.')
  if (!parsedUrl || !/^https?:$/.test(parsedUrl.protocol))
    throw mistake(`baseUrl must be an http or https URL, and it is "${url}".`)
  // The path of each request would become a part of it.
  if (/[?#]/.test(url)) throw mistake('baseUrl must end with a host or a path: leave out what begins with ? or #.')
  return url
}

function pageUrl(): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only browsers have it
  return (globalThis as { location?: { readonly href: string } }).location?.href
}

const resolveUrl = (url: string): URL => new URL(url, pageUrl())

function mayRepeat(error: AgentServerError, { body, isRepeatable }: ApiRequest, failures: number): boolean {
  // A stream can be read only once.
  if (body instanceof ReadableStream) return false
  switch (error.code) {
    case 'unavailable':
      return true // the server has done nothing
    case 'connection_failed':
      return isRepeatable || wasRefused(error.cause)
    case 'unexpected_response':
      return error.status === 429 || (isRepeatable && isGatewayStatus(error.status))
    case 'idempotency_in_flight':
      return failures > 1 // it is our own first request, whose response was lost
    default:
      return error.status === 429 && (error.retryAfterMs ?? Infinity) <= MAX_DELAY_MS
  }
}

/** Browsers hide the status and the target. 304 answers the condition of a request. */
const isRedirect = ({ status, type }: Response): boolean =>
  type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304)

/** Nothing was sent, because nobody listens there yet. Browsers do not say so. */
function wasRefused(cause: unknown): boolean {
  const inner = cause instanceof Error ? (cause.cause ?? cause) : undefined
  return inner instanceof Error && 'code' in inner && /^(ECONNREFUSED|ConnectionRefused)$/.test(String(inner.code))
}

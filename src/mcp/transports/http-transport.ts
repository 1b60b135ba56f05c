/**
 * A server with a URL: Streamable HTTP, or the older SSE. Adds to the transports of the SDK what they leave open: the
 * connection ends when the server has forgotten its session, and a request is over when its answer cannot arrive any
 * more.
 */
import type {
  JSONRPCMessage,
  OAuthClientProvider,
  RequestId,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/client'
import type { McpServer } from '../../contract/mcp/mcp-server.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { settlesWithin, timerMs } from '../../lib/bounded-wait.ts'
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import type { Sdk } from '../load-sdk.ts'
import { createOauthFetch } from './oauth-fetch.ts'
import type { ShowText } from '../tools/shown-text.ts'
import { boundedFetch } from './bounded-fetch.ts'

/** JSON-RPC: for errors of an implementation. The answer to a request was cut off. */
export const CUT_OFF = -32_077

/** Streams that a server ends are opened again: so many at its own pace, and then after twice the time each. */
const FREE_REOPENINGS = 5
const REOPENINGS = { firstMs: 250, longestMs: 60_000 }
/** The time for the last request, which ends the session. */
const GOODBYE_MS = 500

/** A stream that lasted this long starts the count from the beginning. */
const STABLE_MS = 60_000

export type HttpOptions = {
  /** The server with the values of its secrets. */
  readonly server: McpServer
  readonly fetch: UrlFetch
  /** Throws if the network policy of the conversation does not permit the address. */
  readonly permit: (url: URL) => Promise<void>
  /** Absent: the server is not authorized by OAuth. */
  readonly provider?: OAuthClientProvider | undefined
  /** Limits requests to authorization servers. */
  readonly signal: AbortSignal
  /** Shows errors of authorization servers. */
  readonly show: ShowText
}

type Inner = Transport & {
  readonly terminateSession?: () => Promise<void>
  readonly finishAuth: (answer: URLSearchParams) => Promise<void>
}

export class HttpTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly hasPerRequestStream: boolean
  readonly #inner: Inner
  readonly #unanswered = new Set<RequestId>()
  #isOpen = false
  #isClosed = false
  #closing: Promise<void> = Promise.resolve()
  /** Why it was closed from this side, as a clause. */
  fault: string | undefined

  constructor(sdk: Sdk, { server, fetch, permit, provider, signal, show }: HttpOptions) {
    const url = new URL(server.url ?? '')
    this.hasPerRequestStream = server.transport === 'http'
    const ownFetch = boundedFetch({ fetch, permit, onFault: (reason) => this.#fail(reason) })
    const watchedFetch = this.#watched(withHeaders(ownFetch, url, readHeaders(server.headers ?? {})))
    const options = {
      fetch: provider ? createOauthFetch(watchedFetch, signal, show) : watchedFetch,
      ...(provider && { authProvider: provider }),
    }
    this.#inner =
      server.transport === 'sse'
        ? new sdk.SSEClientTransport(url, options)
        : new sdk.StreamableHTTPClientTransport(url, {
            ...options,
            reconnectionScheduler: createReopenings(),
          })
    // oxlint-disable unicorn/prefer-add-event-listener -- it is not an event target
    this.#inner.onclose = () => void this.close()
    this.#inner.onerror = (error) => {
      // It would be opened again as a new session that knows nothing of this one.
      if (this.#isOpen && sdk.SseError.isInstance(error)) this.#fail('its event stream has ended')
      this.onerror?.(error)
    }
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      if ('id' in message && !('method' in message) && message.id !== undefined) this.#unanswered.delete(message.id)
      this.onmessage?.(message)
    }
    // oxlint-enable unicorn/prefer-add-event-listener
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version)
  }

  /** Requests tokens with what the user was sent back with. Only for this: it is not to be started. */
  async finishAuth(answer: URLSearchParams): Promise<void> {
    await this.#inner.finishAuth(answer)
  }

  async start(): Promise<void> {
    await this.#inner.start()
    this.#isOpen = true
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const isRequest = 'method' in message && 'id' in message
    if (!isRequest) return await this.#inner.send(message, options)
    this.#unanswered.add(message.id)
    const onRequestStreamEnd = () => this.#cutOff(message.id)
    try {
      await this.#inner.send(message, { ...options, onRequestStreamEnd })
    } catch (error) {
      this.#unanswered.delete(message.id)
      throw error
    }
  }

  close(): Promise<void> {
    if (!this.#isClosed) {
      // Set first: a listener of its end may close it again.
      this.#isClosed = true
      this.#closing = this.#close()
    }
    return this.#closing
  }

  async #close(): Promise<void> {
    // Calls end now; saying goodbye may take a moment.
    this.onclose?.()
    if (this.fault === undefined) await settlesWithin(GOODBYE_MS, this.#sayGoodbye())
    await this.#inner.close()
  }

  /** The server can forget the session. It need not answer. */
  async #sayGoodbye(): Promise<void> {
    await this.#inner.terminateSession?.().catch(() => {})
  }

  /** Does nothing if it has been answered. */
  #cutOff(id: RequestId): void {
    if (!this.#unanswered.delete(id) || this.#isClosed) return
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: CUT_OFF, message: 'The answer was cut off.' } })
  }

  /** A server that has forgotten the session says so by 404; each further request would fail in the same way. */
  #watched(fetch: UrlFetch): UrlFetch {
    return async (url, init) => {
      const response = await fetch(url, init)
      const isOfSession = new Headers(init?.headers).has('mcp-session-id')
      if (response.status === 404 && isOfSession && init?.method !== 'DELETE') this.#fail('it has ended the session')
      return response
    }
  }

  #fail(reason: string): void {
    this.fault ??= reason
    void this.close()
  }
}

/** The headers are for this server: discovery for OAuth, for example, asks other ones. */
function withHeaders(fetch: UrlFetch, server: URL, addedHeaders: Headers): UrlFetch {
  return async (url, init) => {
    if (new URL(url).origin !== server.origin) return await fetch(url, init)
    const headers = new Headers(addedHeaders)
    new Headers(init?.headers).forEach((value, name) => headers.set(name, value))
    return await fetch(url, { ...init, headers })
  }
}

/** An error of the platform would quote the value, which may be a secret. */
function readHeaders(givenHeaders: Readonly<Record<string, string>>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(givenHeaders))
    try {
      headers.set(name, value)
    } catch {
      throw new Error(`the value of headers.${name} has characters that no header can have`)
    }
  return headers
}

/** A server decides when a stream is opened again: without a limit, it could ask for any number of requests. */
function createReopenings() {
  let count = 0
  let at = -Infinity
  return (reopen: () => void, askedMs: number) => {
    const now = performance.now()
    if (now - at > STABLE_MS) count = 0
    at = now
    const limitedCount = ++count - FREE_REOPENINGS
    const ms = Math.max(askedMs, limitedCount > 0 ? backoffMs(limitedCount + 1, REOPENINGS) : 0)
    const timer = setTimeout(reopen, timerMs(ms))
    timer.unref()
    return () => clearTimeout(timer)
  }
}

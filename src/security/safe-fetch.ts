/**
 * Sends requests to URLs that a client specified: only to addresses that are public or allowed. Does not follow
 * redirects.
 */
import type { Agent, request } from 'undici'
import { orAborted } from '../lib/bounded-wait.ts'
import type { Lookup } from './lookup.ts'
import { lookupAll } from './lookup.ts'
import { createGuardedConnector, foreseeRefusal } from './guarded-connector.ts'
import type { AddressRules } from './public-address.ts'
import { createAddressRules } from './public-address.ts'

export type PostOptions = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

export type PostAnswer = { readonly status: number; readonly retryAfter: string | undefined }

export type GetOptions = {
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export type ExchangeOptions = PostOptions & { readonly maxBytes: number }

export type GetAnswer = {
  readonly status: number
  readonly contentType: string
  /** The target of a redirect, as it was sent. */
  readonly location: string | undefined
  readonly body: Buffer
  /** There is more than was read. */
  readonly isCut: boolean
}

export interface SafeFetch {
  /**
   * Resolves when the response is complete, or as much of it as is read; its body is discarded. Throws
   * `AddressRefused`, the reason of the signal, or the network's error. Only the signal limits the time.
   */
  post(url: string, options: PostOptions): Promise<PostAnswer>
  /**
   * Resolves to what is there, up to `maxBytes` of it. Throws as `post` does. A redirect is an answer like others: the
   * caller asks for its target in turn, which is then judged.
   */
  get(url: string, options: GetOptions): Promise<GetAnswer>
  /** Posts, and resolves as `get` does. */
  exchange(url: string, options: ExchangeOptions): Promise<GetAnswer>
  /** Returns why nothing would be sent there now, as a clause; undefined also if the name does not resolve yet. */
  refusal(url: string): Promise<string | undefined>
  /** Aborts requests in progress. */
  close(): Promise<void>
}

export type SafeFetchOptions = {
  /** See `createAddressRules`. */
  readonly allow: readonly string[]
  readonly lookup?: Lookup
}

/** Longer responses are not read completely; their connection is closed instead. */
const MAX_ANSWER_BYTES = 64 * 1024

export function createSafeFetch({ allow, lookup = lookupAll }: SafeFetchOptions): SafeFetch {
  const rules = createAddressRules(allow)
  // Loaded with the first request: it costs memory that a server without callbacks saves.
  let client: Promise<Client> | undefined
  const load = () => (client ??= loadClient(rules, lookup))

  const read = async (url: string, { maxBytes, ...requestOptions }: RequestOptions): Promise<GetAnswer> => {
    requestOptions.signal.throwIfAborted()
    const { agent, send } = await load()
    // The answer must not be compressed: what a few bytes unfold to need not be judged.
    const headers = { ...requestOptions.headers, 'accept-encoding': 'identity' }
    const sending = send(url, { dispatcher: agent, ...requestOptions, headers })
    const answer = await orAborted(sending, requestOptions.signal, ({ body }) => body.on('error', () => {}).destroy())
    const encoding = headerOf(answer.headers, 'content-encoding')
    if (encoding !== '' && encoding !== 'identity') {
      answer.body.on('error', () => {}).destroy()
      throw new Error(`the answer is compressed (${encoding}), which was not asked for`)
    }
    const location = headerOf(answer.headers, 'location') || undefined
    const facts = { status: answer.statusCode, contentType: headerOf(answer.headers, 'content-type'), location }
    return { ...facts, ...(await readUpTo(answer.body, maxBytes)) }
  }

  return {
    async post(url, { headers, body, signal }) {
      signal.throwIfAborted()
      const { agent, send } = await load()
      const sending = send(url, { dispatcher: agent, method: 'POST', headers, body, signal })
      // undici checks the signal only after connecting: a handshake without a response would block the caller.
      const answer = await orAborted(sending, signal, ({ body }) => body.on('error', () => {}).destroy())
      await readSome(answer.body)
      return { status: answer.statusCode, retryAfter: headerOf(answer.headers, 'retry-after') || undefined }
    },

    get: (url, options) => read(url, { method: 'GET', ...options }),
    exchange: (url, options) => read(url, { method: 'POST', ...options }),

    refusal: (url) => foreseeRefusal(rules, lookup, url),

    async close() {
      await (await client)?.agent.destroy()
    },
  }
}

type RequestOptions = GetOptions & { readonly method: 'GET' | 'POST'; readonly body?: string }

type Client = { readonly agent: Agent; readonly send: typeof request }

async function loadClient(rules: AddressRules, lookup: Lookup): Promise<Client> {
  const { Agent, request } = await import('undici')
  const connect = await createGuardedConnector(rules, lookup)
  // Its HTTP/2 probe never ends if the first request to an origin cannot be written.
  return { agent: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, allowH2: false }), send: request }
}

/**
 * Reads to the end, so that the connection can be reused, but only up to a limit. Throws if the response is
 * interrupted.
 */
async function readSome(body: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) return
  }
}

/** The first value of a header; empty when it was not sent. */
const headerOf = (headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string =>
  [headers[name]].flat()[0] ?? ''

async function readUpTo(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Pick<GetAnswer, 'body' | 'isCut'>> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) break
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: bytes > maxBytes }
}

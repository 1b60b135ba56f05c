/** How requests to models go out: over one pool of connections for every conversation, with no limit on time but the caller's. */
import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import type { Dispatcher, buildConnector, request } from 'undici'
import { ComplexJson, refuseComplexJson } from '../lib/json/untrusted-json.ts'
import { orAborted } from '../lib/bounded-wait.ts'
import { ERROR_BODY_TIMEOUT_MS, MAX_ERROR_BYTES } from './answer/answer-limits.ts'

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

export type PooledFetchOptions = {
  /** Makes the connections; asked for once, with the first request. Default: undici's own, to any address. */
  readonly connector?: () => Promise<buildConnector.connector>
}

/**
 * Node's own fetch gives up after 300 s without headers or data; a slow model may think for longer, and `timeout` is
 * what decides. undici's `request` takes half the CPU of its `fetch`, most of which goes into web streams. A redirect
 * is an answer like any other.
 */
export function createPooledFetch({ connector }: PooledFetchOptions = {}): Fetch {
  let client: Promise<Client> | undefined
  return async (url, init = {}) => {
    const { send, dispatcher } = await (client ??= loadClient(connector))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the SDK asks with
    const { method, body, headers, signal } = init as PlainInit
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK gives its own text
    const sent = send(url as string, { method, body, headers, signal, dispatcher })
    // undici looks at the signal once it is connected: a handshake that nobody answers would hold up whoever waits.
    return asResponse(await orAborted(sent, signal, discard))
  }
}

type Client = { readonly send: typeof request; readonly dispatcher: Dispatcher }

/** undici is loaded when the first request is made. */
async function loadClient(connector: PooledFetchOptions['connector']): Promise<Client> {
  const { Agent, request } = await import('undici')
  const connect = await connector?.()
  // Its probe for HTTP/2 never ends when the first request to an origin cannot be written, and every later one waits for it.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false, ...(connect && { connect }) })
  return { send: request, dispatcher }
}

/** A stream that is destroyed before its end says so with an error, which here is no news. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => {}).destroy()
}

/** What the SDK asks with when it is given bytes and plain headers. */
type PlainInit = {
  readonly method: Dispatcher.HttpMethod
  readonly body: Buffer
  readonly headers: Record<string, string>
  readonly signal: AbortSignal
}

/** As much of one as is read: status and headers, the body's bytes as an async iterable, or its text, which is that of an error. */
async function asResponse({ statusCode: status, headers: received, body: sent }: Received): Promise<Response> {
  const ok = status >= 200 && status < 300
  const headers = headersOf(received)
  const body = await decoded(sent, headers.get('content-encoding') ?? '')
  const response = { ok, status, headers, body, text: async () => plain(await beginningOf(body)) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as much of one as the SDK reads
  return response as unknown as Response
}

type Received = Dispatcher.ResponseData

/** 8 MiB for each answer, the most that RFC 9659 allows; zlib's own limit is 128 MiB. Brotli's large windows are off by default. */
const MAX_ZSTD_WINDOW_LOG = 23

/** We ask for `identity`, and some gateways compress all the same. An encoding of another name is read as it comes. */
async function decoded(body: Readable, encoding: string): Promise<Readable> {
  const decoder = await decoderOf(encoding.trim().toLowerCase())
  // Whoever reads gets the error of either, from the decoder.
  return decoder ? pipeline(body, decoder, () => {}) : body
}

async function decoderOf(encoding: string): Promise<Transform | undefined> {
  if (encoding === '' || encoding === 'identity') return undefined
  const zlib = await import('node:zlib')
  // What came of a stream that was cut off is read like that of any other.
  const lenient = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip(lenient)
    case 'deflate':
      return zlib.createInflate(lenient)
    case 'br':
      return zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH })
    case 'zstd':
      return zlib.createZstdDecompress({
        finishFlush: zlib.constants.ZSTD_e_flush,
        params: { [zlib.constants.ZSTD_d_windowLogMax]: MAX_ZSTD_WINDOW_LOG },
      })
    default:
      return undefined
  }
}

/** The beginning of the body, or all of it; a long one is not read to its end, which may never come. */
async function beginningOf(body: Readable): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => body.destroy(), ERROR_BODY_TIMEOUT_MS)
  try {
    for await (const part of body) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- bytes, as no text encoding is set
      parts.push(part as Buffer)
      bytes += parts.at(-1)?.length ?? 0
      if (bytes >= MAX_ERROR_BYTES) break
    }
  } catch {
    // Cut off: what came is what was said.
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  return Buffer.concat(parts).toString('utf8', 0, MAX_ERROR_BYTES)
}

/** The SDK parses what it can, and writes it into its message: for that, JSON must not be deeper than its stack. */
function plain(text: string): string {
  try {
    refuseComplexJson(text)
    return text
  } catch (error) {
    if (error instanceof ComplexJson) return JSON.stringify({ error: { message: text } })
    throw error
  }
}

function headersOf(received: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers()
  for (const [name, values] of Object.entries(received)) {
    for (const value of [values ?? []].flat()) headers.append(name, value)
  }
  return headers
}

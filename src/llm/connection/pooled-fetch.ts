/** Sends model requests over one connection pool for all conversations, with no time limit except the caller's. */
import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import type { Dispatcher, buildConnector, request } from 'undici'
import { ComplexJson, refuseComplexJson } from '../../lib/json/untrusted-json.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import { ERROR_BODY_TIMEOUT_MS, MAX_ERROR_BYTES } from '../answer/answer-limits.ts'

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

export type PooledFetchOptions = {
  /**
   * Creates the connector; called once, with the first request. Default: undici's own, which connects to any address.
   */
  readonly connector?: () => Promise<buildConnector.connector>
}

/**
 * Node's own fetch aborts after 300 s without headers or data; a slow model may think for longer, and `timeout`
 * decides. undici's `request` takes half the CPU of its `fetch`, most of which goes into web streams. A redirect is
 * returned like any other response.
 */
export function createPooledFetch({ connector }: PooledFetchOptions = {}): Fetch {
  let client: Promise<Client> | undefined
  return async (url, init = {}) => {
    const { send, dispatcher } = await (client ??= loadClient(connector))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the SDK asks with
    const { method, body, headers, signal } = init as PlainInit
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK gives its own text
    const sending = send(url as string, { method, body, headers, signal, dispatcher })
    // undici checks the signal only after connecting: a handshake without a response would block the caller.
    return asResponse(await orAborted(sending, signal, discard))
  }
}

type Client = { readonly send: typeof request; readonly dispatcher: Dispatcher }

/** Loads what the first request would load: for one that is given little time. */
export const loadPooledFetch = async (): Promise<void> => void (await import('undici'))

/** Loads undici with the first request. */
async function loadClient(connector: PooledFetchOptions['connector']): Promise<Client> {
  const { Agent, request } = await import('undici')
  const connect = await connector?.()
  // Its HTTP/2 probe never ends if the first request to an origin cannot be written, and every later one waits for it.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false, ...(connect && { connect }) })
  return { send: request, dispatcher }
}

/** Destroying a stream before its end emits an error, which is expected here. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => {}).destroy()
}

/** The SDK's options when it is given bytes and plain headers. */
type PlainInit = {
  readonly method: Dispatcher.HttpMethod
  readonly body: Buffer
  readonly headers: Record<string, string>
  readonly signal: AbortSignal
}

/**
 * The parts of a response that the SDK reads: status and headers, the body's bytes as an async iterable, or its text,
 * which is an error message.
 */
async function asResponse({
  statusCode: status,
  headers: receivedHeaders,
  body: sentBody,
}: ReceivedResponse): Promise<Response> {
  const ok = status >= 200 && status < 300
  const headers = new ReceivedHeaders(receivedHeaders)
  const encoding = headers.get('content-encoding')
  const body = encoding === null ? sentBody : await decodeBody(sentBody, encoding)
  const response = { ok, status, headers, body, text: async () => plain(await beginningOf(body)) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as much of one as the SDK reads
  return response as unknown as Response
}

type ReceivedResponse = Dispatcher.ResponseData

/**
 * 8 MiB per answer, the maximum of RFC 9659; zlib's own limit is 128 MiB. Brotli's large windows are off by default.
 */
const MAX_ZSTD_WINDOW_LOG = 23

/** We request `identity`, and some gateways compress nevertheless. An unknown encoding is read unchanged. */
async function decodeBody(body: Readable, encoding: string): Promise<Readable> {
  const decoder = await decoderOf(encoding.trim().toLowerCase())
  // The decoder reports the errors of both streams to the reader.
  return decoder ? pipeline(body, decoder, () => {}) : body
}

async function decoderOf(encoding: string): Promise<Transform | undefined> {
  if (encoding === '' || encoding === 'identity') return undefined
  const zlib = await import('node:zlib')
  // The part of an interrupted stream that arrived is read like any other.
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

/** Reads the beginning of the body; a long one is not read to its end, which may never come. */
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
    // The stream broke: return what arrived.
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
  return Buffer.concat(parts).toString('utf8', 0, MAX_ERROR_BYTES)
}

/** The SDK parses JSON and writes it into its message: it must not be nested deeper than the stack allows. */
function plain(text: string): string {
  try {
    refuseComplexJson(text)
    return text
  } catch (error) {
    if (error instanceof ComplexJson) return JSON.stringify({ error: { message: text } })
    throw error
  }
}

/** The part of `Headers` that the SDKs read. The global class is part of the fetch of Node, a second HTTP client. */
class ReceivedHeaders implements Iterable<[name: string, value: string]> {
  /** The values by names in lower case. */
  readonly #values = new Map<string, string>()

  /** Several values of one name are joined. */
  constructor(receivedHeaders: Readonly<Record<string, string | readonly string[] | undefined>>) {
    for (const [name, value] of Object.entries(receivedHeaders)) {
      if (value !== undefined)
        this.#values.set(name.toLowerCase(), typeof value === 'string' ? value : value.join(', '))
    }
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  entries(): IterableIterator<[name: string, value: string]> {
    return this.#values.entries()
  }

  [Symbol.iterator](): IterableIterator<[name: string, value: string]> {
    return this.entries()
  }
}

/**
 * `fetch` to a server on this machine: over its Unix socket, over its address, or in this process. Not the global one, which has no sockets
 * and ends what is silent for five minutes; a program that only connects does not load undici, which takes 30 MB.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'

type Fetch = typeof globalThis.fetch

export type LocalFetch = AsyncDisposable & {
  readonly fetch: Fetch
  /** The URL for requests: a host is needed, also over a socket. */
  readonly baseUrl: string
}

/** The destination of connections: a path of a socket, the address of an http URL, or what a function opens. */
export type FetchTarget =
  | { readonly socketPath: string }
  | { readonly baseUrl: string }
  | { readonly createConnection: () => Duplex }

/** Each request has its own connection, so that none is left over. Those that are open are cut when it is disposed. */
export function createLocalFetch(place: FetchTarget): LocalFetch {
  const open = new Set<ClientRequest>()
  const fetch: Fetch = async (input, init = {}) => {
    // This makes the headers of its body, and reads bodies that are forms or streams. Its own signal would outlive the
    // request.
    const fetchRequest = new Request(input, { ...init, signal: null })
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    const sentRequest = request(fetchRequest.url, {
      ...optionsOf(fetchRequest),
      ...('socketPath' in place && place),
      // An agent would open another connection.
      ...('createConnection' in place && { ...place, agent: undefined }),
    })
    open.add(sentRequest)
    sentRequest.once('close', () => open.delete(sentRequest))
    sentRequest.once('response', (incoming) => {
      try {
        resolve(responseOf(incoming))
      } catch (error) {
        sentRequest.destroy(error instanceof Error ? error : undefined)
      }
    })
    // This works also after the response has begun: then the reader of its body gets the error.
    sentRequest.on('error', (cause) => reject(new TypeError('fetch failed', { cause })))
    stopOnAbort(sentRequest, init.signal ?? undefined, reject)
    if (typeof init.body === 'string' || init.body instanceof Uint8Array) sentRequest.end(init.body)
    else if (fetchRequest.body) sendBody(fetchRequest.body, sentRequest)
    else sentRequest.end()
    return await promise
  }
  return {
    fetch,
    baseUrl: 'baseUrl' in place ? place.baseUrl : 'http://localhost',
    async [Symbol.asyncDispose]() {
      for (const each of open) each.destroy()
    },
  }
}

function optionsOf({ method, headers }: Request): RequestOptions {
  return { agent: false, method, headers: Object.fromEntries(headers) }
}

function stopOnAbort(
  sentRequest: ClientRequest,
  signal: AbortSignal | undefined,
  reject: (reason: unknown) => void,
): void {
  if (!signal) return
  const stop = () => {
    reject(signal.reason)
    sentRequest.destroy()
  }
  if (signal.aborted) return stop()
  signal.addEventListener('abort', stop, { once: true })
  sentRequest.once('close', () => signal.removeEventListener('abort', stop))
}

function sendBody(body: ReadableStream, sentRequest: ClientRequest): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same class, declared twice
  const source = Readable.fromWeb(body as NodeStream)
  source.once('error', (error) => sentRequest.destroy(error))
  sentRequest.once('close', () => source.destroy())
  source.pipe(sentRequest)
}

/** Statuses whose responses have no body. */
const WITHOUT_BODY: ReadonlySet<number | undefined> = new Set([204, 205, 304])

function responseOf(incoming: IncomingMessage): Response {
  const { statusCode: status = 0, rawHeaders } = incoming
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  if (!WITHOUT_BODY.has(status)) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same class, declared twice
    return new Response(Readable.toWeb(incoming) as ReadableStream, { status, headers })
  }
  incoming.resume().on('error', () => {}) // nobody reads it
  return new Response(undefined, { status, headers })
}

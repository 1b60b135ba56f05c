/** `fetch` to a server on this machine: over its Unix socket, whatever host the URL names, or over its address. */
import { Agent, fetch as fetchWith } from 'undici'

type Fetch = typeof globalThis.fetch

export type LocalFetch = AsyncDisposable & {
  readonly fetch: Fetch
  /** For requests: a host is needed, also over a socket. */
  readonly baseUrl: string
}

const UNIX = 'unix:'

/** `address` is `unix:` and a path, or an http URL. Streams may be silent for long, and last as long as they are read. */
export function createLocalFetch(address: string): LocalFetch {
  const isSocket = address.startsWith(UNIX)
  const dispatcher = new Agent({
    bodyTimeout: 0,
    headersTimeout: 0,
    ...(isSocket && { connect: { socketPath: address.slice(UNIX.length) } }),
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that of undici is the one of Node, with its own types
  const fetch = ((url: string, init: object) => fetchWith(url, { ...init, dispatcher })) as unknown as Fetch
  return {
    fetch,
    baseUrl: isSocket ? 'http://localhost' : address,
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  }
}

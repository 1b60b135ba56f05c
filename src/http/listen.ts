/**
 * Listens on all configured addresses, before there is an HTTP server: connections wait for it. One HTTP server handles
 * all of them, so that hooks, time limits, WebSockets and shutdown are the same on each. Knows nothing about routes.
 */
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { codeOf } from '../lib/error-code.ts'
import { EarlyConnections } from './early-connections.ts'

export type ListenOptions = {
  /** An address, a host name, or `localhost` for both loopback addresses. */
  readonly host: string
  /** 0 selects a free port, the same on every address. */
  readonly port: number
}

export type Listening = {
  /** The URL of the first address. */
  readonly url: string
  /** What the log says about it, one line each. */
  readonly notes: readonly string[]
  /** A warning that other local programs could listen on a related address; undefined if there is none. */
  readonly warning: string | undefined
  /** Passes the connections to this server, which listens elsewhere already. Until then they wait. */
  readonly serve: (server: HttpServer) => void
  /** Stops listening immediately, and ends connections that wait. Resolves when all connections are closed. Idempotent. */
  readonly close: () => Promise<void>
}

const LOOPBACK = { v4: '127.0.0.1', v6: '::1' } as const
const EVERY_V4 = '0.0.0.0'

/**
 * The first address of a host, and one more. A client that connects to `localhost` tries both families. A program that
 * listens on the other one would receive its key, and an agent on a shared network could be that program.
 */
const PAIRS: Readonly<Record<string, readonly [first: string, second: string]>> = {
  localhost: [LOOPBACK.v4, LOOPBACK.v6],
  [EVERY_V4]: [EVERY_V4, LOOPBACK.v6],
}

/** Loopback addresses that are listened on alone if configured explicitly, and the one that stays unprotected. */
const LEFT_FREE: Readonly<Record<string, string>> = { [LOOPBACK.v4]: LOOPBACK.v6, [LOOPBACK.v6]: LOOPBACK.v4 }

/** The machine has no IPv6, or no IPv6 loopback address. */
const NOT_THERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/** Attempts to find a port that is free in both address families. */
const TRIES = 20

/** Throws the system's error if one of the addresses is in use; then it listens on none. */
export async function listenOn({ host, port }: ListenOptions): Promise<Listening> {
  const connections = new EarlyConnections()
  let closing: Promise<void> | undefined
  const [first, second] = PAIRS[host] ?? [host, undefined]
  for (let tries = TRIES; ; tries--) {
    const other = second === undefined ? undefined : await listenToo(connections, second, port)
    try {
      const own = await listen(connections, first, other?.address.port ?? port)
      const boundServers = other ? [own, other] : [own]
      const missing =
        second === undefined || other ? [] : [`This machine has no ${second}; the server listens without it`]
      return {
        url: urlOf(own.address),
        notes: [
          ...missing,
          ...boundServers.flatMap(({ address }) => urlsOf(address)).map((each) => `Server listening at ${each}`),
        ],
        warning: warningOf(host, own.address.port),
        serve: (server) => connections.passTo(server),
        close: () => (closing ??= closeAll(connections, boundServers)),
      }
    } catch (error) {
      other?.server.close()
      if (port !== 0 || other === undefined || tries === 0 || codeOf(error) !== 'EADDRINUSE') throw error
    }
  }
}

type BoundServer = { readonly server: Server; readonly address: AddressInfo }

/** Returns undefined if the address does not exist. */
async function listenToo(connections: EarlyConnections, host: string, port: number): Promise<BoundServer | undefined> {
  try {
    return await listen(connections, host, port)
  } catch (error) {
    if (NOT_THERE.has(codeOf(error) ?? '')) return undefined
    throw error
  }
}

async function listen(connections: EarlyConnections, host: string, port: number): Promise<BoundServer> {
  // The same options as the sockets of an HTTP server.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // The socket remembers it: the log names the address also when the client has left.
    void socket.remoteAddress
    connections.add(socket)
  })
  server.listen({ host, port })
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens, and not on a path
  return { server, address: server.address() as AddressInfo }
}

async function closeAll(connections: EarlyConnections, boundServers: readonly BoundServer[]): Promise<void> {
  const closings = boundServers.map(({ server }) => promisify(server.close.bind(server))())
  connections.endWaiting()
  await Promise.all(closings)
}

/** Programs of this machine reach all IPv4 addresses by the loopback one. */
const urlOf = ({ address, port }: AddressInfo): string =>
  `http://${address.includes(':') ? `[${address}]` : address.replace(EVERY_V4, LOOPBACK.v4)}:${port}`

/** Returns, for all IPv4 addresses, the URL of each that this machine has. */
function urlsOf(boundAddress: AddressInfo): string[] {
  if (boundAddress.address !== EVERY_V4) return [urlOf(boundAddress)]
  const addresses = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
  return addresses.filter(({ family }) => family === 'IPv4').map(({ address }) => urlOf({ ...boundAddress, address }))
}

function warningOf(host: string, port: number): string | undefined {
  const free = LEFT_FREE[host]
  if (free === undefined) return undefined
  const place = free.includes(':') ? `[${free}]:${port}` : `${free}:${port}`
  return `${place} is not in use by this server, and another program that listens there receives the key of clients that use localhost; set OPENHANDS_SERVER_HOST=localhost to listen on both`
}

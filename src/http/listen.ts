/**
 * Listens on all configured addresses. One HTTP server handles all of them, so that hooks, time limits, WebSockets and
 * shutdown are the same on each. Knows nothing about routes.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, ListenOptions as NetListenOptions, Server } from 'node:net'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { codeOf } from '../lib/error-code.ts'

export type ListenOptions = {
  /** An address, a host name, or `localhost` for both loopback addresses. */
  readonly host: string
  /** 0 selects a free port, the same on every address. */
  readonly port: number
}

export type Listening = {
  /** The URL of the first address. */
  readonly url: string
  /** A warning that other local programs could listen on a related address; undefined if there is none. */
  readonly warning: string | undefined
  /** Stops listening immediately. Resolves when all connections are closed. */
  readonly close: () => Promise<void>
}

const LOOPBACK = { v4: '127.0.0.1', v6: '::1' } as const

/**
 * Per host, the address of the HTTP server itself and one more. A client that connects to `localhost` tries both
 * families. A program that listens on the other one would receive its key, and an agent on a shared network could be
 * that program.
 */
const PAIRS: Readonly<Record<string, readonly [first: string, second: string]>> = {
  localhost: [LOOPBACK.v4, LOOPBACK.v6],
  '0.0.0.0': ['0.0.0.0', LOOPBACK.v6],
}

/** Loopback addresses that are listened on alone if configured explicitly, and the one that stays unprotected. */
const LEFT_FREE: Readonly<Record<string, string>> = { [LOOPBACK.v4]: LOOPBACK.v6, [LOOPBACK.v6]: LOOPBACK.v4 }

/** The machine has no IPv6, or no IPv6 loopback address. */
const NOT_THERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/** Attempts to find a port that is free in both address families. */
const TRIES = 20

/** Throws the system's error if one of the addresses is in use; then it listens on none. */
export async function listenOn(app: FastifyInstance, { host, port }: ListenOptions): Promise<Listening> {
  const [first, second] = PAIRS[host] ?? [host, undefined]
  for (let tries = TRIES; ; tries--) {
    const other = second === undefined ? undefined : await listenToo(app, second, port)
    try {
      const url = await app.listen({ host: first, port: other?.port ?? port })
      if (other) app.log.info(`Server listening at http://[${second}]:${other.port}`)
      return { url, warning: warningOf(host, url), close: () => closeAll(app, other?.server) }
    } catch (error) {
      other?.server.close()
      if (port !== 0 || other === undefined || tries === 0 || codeOf(error) !== 'EADDRINUSE') throw error
    }
  }
}

/** Listens on a Unix socket, in addition to the addresses that it listens on already, if any. */
export async function listenOnSocket(app: FastifyInstance, path: string): Promise<Pick<Listening, 'close'>> {
  if (app.server.listening) {
    const server = await passConnections(app, { path })
    return { close: () => promisify(server.close.bind(server))() }
  }
  await app.listen({ path })
  return { close: () => closeAll(app, undefined) }
}

/** Returns undefined if the address does not exist. */
async function listenToo(app: FastifyInstance, host: string, port: number) {
  try {
    const server = await passConnections(app, { host, port })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens, and not on a path
    const address = server.address() as AddressInfo
    return { server, port: address.port }
  } catch (error) {
    if (!NOT_THERE.has(codeOf(error) ?? '')) throw error
    app.log.info(`This machine has no ${host}; the server listens without it`)
    return undefined
  }
}

/** Passes connections of another listener to the HTTP server. */
async function passConnections(app: FastifyInstance, where: NetListenOptions): Promise<Server> {
  // The same options as the sockets of an HTTP server.
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  server.on('connection', (socket) => {
    // Before this event the HTTP server has no time limits for connections.
    if (app.server.listening) app.server.emit('connection', socket)
    else socket.destroy()
  })
  server.listen(where)
  await once(server, 'listening')
  return server
}

async function closeAll(app: FastifyInstance, other: Server | undefined): Promise<void> {
  const otherClosed = other && promisify(other.close.bind(other))()
  // It also ends idle connections, including those that the other listener accepted.
  await app.close()
  await otherClosed
}

function warningOf(host: string, url: string): string | undefined {
  const free = LEFT_FREE[host]
  if (free === undefined) return undefined
  const { port } = new URL(url)
  const place = free.includes(':') ? `[${free}]:${port}` : `${free}:${port}`
  return `${place} is not in use by this server, and another program that listens there receives the key of clients that use localhost; set OPENHANDS_SERVER_HOST=localhost to listen on both`
}

/**
 * The addresses that the server takes connections on. One HTTP server answers all of them, so that hooks, time limits,
 * WebSockets and the end of the server are the same on each. Knows nothing of what is answered.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { codeOf } from '../lib/error-code.ts'

export type ListenOptions = {
  /** An address, a host name, or `localhost` for both loopback addresses. */
  readonly host: string
  /** 0 takes a free one, the same on every address. */
  readonly port: number
}

export type Listening = {
  /** Of the first address. */
  readonly url: string
  /** What is not guarded against other programs of this machine, as a sentence; undefined when nothing is. */
  readonly warning: string | undefined
  /** Stops listening at once. Resolves when every connection is gone. */
  readonly close: () => Promise<void>
}

const LOOPBACK = { v4: '127.0.0.1', v6: '::1' } as const

/**
 * Host -> the address of the HTTP server itself, and one more. A client that says `localhost` tries both families. A program
 * that listens on the other one would receive its key, and an agent on a shared network could be that program.
 */
const PAIRS: Readonly<Record<string, readonly [first: string, second: string]>> = {
  localhost: [LOOPBACK.v4, LOOPBACK.v6],
  '0.0.0.0': ['0.0.0.0', LOOPBACK.v6],
}

/** Loopback addresses that are listened on alone when they are named themselves -> the one that is left free. */
const LEFT_FREE: Readonly<Record<string, string>> = { [LOOPBACK.v4]: LOOPBACK.v6, [LOOPBACK.v6]: LOOPBACK.v4 }

/** The machine has no IPv6, or no loopback address of it. */
const NOT_THERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/** Ports that are tried when any is fine, and the one that the first family gave is taken in the other. */
const TRIES = 20

/** Throws what the system says when one of the addresses is taken; then it listens on none. */
export async function listenOn(app: FastifyInstance, { host, port }: ListenOptions): Promise<Listening> {
  const [first, second] = PAIRS[host] ?? [host, undefined]
  for (let tries = TRIES; ; tries--) {
    const other = second === undefined ? undefined : await listenToo(app, second, port)
    try {
      const url = await app.listen({ host: first, port: other?.port ?? port })
      return { url, warning: warningOf(host, url), close: () => closeAll(app, other?.server) }
    } catch (error) {
      other?.server.close()
      if (port !== 0 || other === undefined || tries === 0 || codeOf(error) !== 'EADDRINUSE') throw error
    }
  }
}

/** The HTTP server takes connections that another listener has accepted as its own. Undefined where there is no such address. */
async function listenToo(app: FastifyInstance, host: string, port: number) {
  // As Node makes the sockets of an HTTP server.
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  server.on('connection', (socket) => {
    // Until then the HTTP server has no time limits for connections.
    if (app.server.listening) app.server.emit('connection', socket)
    else socket.destroy()
  })
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (error) {
    if (!NOT_THERE.has(codeOf(error) ?? '')) throw error
    app.log.info(`This machine has no ${host}; the server listens without it`)
    return undefined
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens, and not on a path
  const address = server.address() as AddressInfo
  app.log.info(`Server listening at http://[${address.address}]:${address.port}`)
  return { server, port: address.port }
}

async function closeAll(app: FastifyInstance, other: Server | undefined): Promise<void> {
  const otherClosed = other && promisify(other.close.bind(other))()
  // It also ends idle connections, those that the other listener accepted among them.
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

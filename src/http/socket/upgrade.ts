/**
 * Upgrades requests to WebSockets and answers invalid ones with HTTP errors in the common format. An upgrade passes
 * through hooks and routes like any request; the WebSocket library is loaded with the first one.
 */
import type { IncomingMessage } from 'node:http'
import { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket, WebSocketServer } from 'ws'
import { Problem } from '../../contract/problem.ts'
import type { IsAllowedOrigin } from '../guards/cors.ts'
import { hasBody } from '../guards/slow-bodies.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route accepts WebSockets. */
    socket?: true
  }
  interface FastifyInstance {
    upgrades: Upgrades
  }
}

export type Upgrades = {
  /** True if the connection is really being upgraded: headers alone can pretend it. */
  readonly has: (request: FastifyRequest) => boolean
  /**
   * Takes the request over from Fastify. Calls `onOpen` before the first frame can arrive, so it must add its listeners
   * synchronously; never calls it if the client has disconnected by then.
   */
  readonly accept: (request: FastifyRequest, reply: FastifyReply, onOpen: (ws: WebSocket) => void) => Promise<void>
  /** Cuts the WebSockets that have not closed by themselves. */
  readonly cut: () => void
}

/** How long a peer has to complete the closing handshake, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5000

/**
 * An option of Node's server. Other protocols are not upgraded: HTTP clients offer HTTP/2 this way, and continue
 * without it. Neither is a request with a body, which would precede the first frame on the same connection.
 */
export const shouldUpgrade = (request: IncomingMessage): boolean =>
  request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(request)

/** Adds `app.upgrades`. */
export function takeUpgrades(app: FastifyInstance, maxFrameBytes: number): void {
  /** The bytes after the head. */
  const heads = new WeakMap<IncomingMessage, Buffer>()
  let server: WebSocketServer | undefined

  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node has removed its own listener.
    socket.on('error', () => socket.destroy())
    heads.set(request, head)
    const response = new ServerResponse(request)
    response.assignSocket(request.socket)
    // The request has been answered: nothing reads from its connection any more.
    response.once('finish', () => request.socket.destroy())
    app.routing(request, response)
  })

  app.decorate('upgrades', {
    has: ({ raw }) => heads.has(raw),
    async accept({ raw }, reply, onOpen) {
      reply.hijack()
      reply.raw.detachSocket(raw.socket)
      server ??= await createServer(maxFrameBytes)
      // oxlint-disable-next-line typescript/no-non-null-assertion -- only for a request that `has` confirmed
      server.handleUpgrade(raw, raw.socket, heads.get(raw)!, onOpen)
    },
    cut() {
      for (const socket of server?.clients ?? []) socket.terminate()
    },
  })
}

async function createServer(maxPayload: number): Promise<WebSocketServer> {
  const { WebSocketServer } = await import('ws')
  const options = { noServer: true, perMessageDeflate: false, maxPayload, closeTimeout: CLOSE_TIMEOUT_MS }
  return new WebSocketServer(options)
}

/** A hook that runs after the key check. Throws a `Problem` for an invalid upgrade. */
export function refuseBadUpgrade(request: FastifyRequest, isAllowedOrigin: IsAllowedOrigin): void {
  if (request.is404) return
  if (!request.routeOptions.config.socket)
    throw new Problem('invalid_request', 'This route is not a WebSocket. Leave out the Upgrade header.')
  const { origin, 'sec-websocket-key': key = '', 'sec-websocket-version': version } = request.headers
  if (origin !== undefined && !isSameOrigin(origin, request.host) && !isAllowedOrigin(origin))
    throw new Problem(
      'origin_refused',
      'Pages of this origin must not connect. Add the origin to OPENHANDS_CORS_ORIGINS.',
    )
  if (version !== '13') throw upgradeRequired()
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw new Problem(
      'invalid_request',
      'Sec-WebSocket-Key is missing or not 16 bytes in base64. Use a WebSocket client.',
    )
}

export const upgradeRequired = (): Problem =>
  new Problem('upgrade_required', 'This route is a WebSocket. Connect to it with a WebSocket client, version 13.')

/** Compares host and port only: the scheme is that of the proxy in front, if there is one. */
function isSameOrigin(origin: string, host: string): boolean {
  return URL.parse(origin)?.host === host
}

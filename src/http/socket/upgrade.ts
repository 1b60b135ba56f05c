/**
 * How a request becomes a WebSocket: which may, and which HTTP errors the others get, in the common form. An
 * upgrade goes through hooks and routes as any request does; what makes a socket of it is loaded with the first one.
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
    /** Takes WebSockets. */
    socket?: true
  }
  interface FastifyInstance {
    upgrades: Upgrades
  }
}

export type Upgrades = {
  /** Whether the connection is really being upgraded: headers alone can pretend it. */
  readonly has: (request: FastifyRequest) => boolean
  /**
   * Ends what Fastify would do with the request. `onOpen` is called before the first frame can come, so that it has to
   * listen within the call; never when the client is gone by then.
   */
  readonly accept: (request: FastifyRequest, reply: FastifyReply, onOpen: (ws: WebSocket) => void) => Promise<void>
  /** Those that have not ended by themselves. */
  readonly cut: () => void
}

/** How long a peer has to agree to the end of its connection, milliseconds. */
const CLOSE_TIMEOUT_MS = 5000

/**
 * An option of Node's server. Any other protocol is not taken up: HTTP clients offer HTTP/2 so, and continue without. Nor is a
 * request with a body, which would come before the first frame on the same connection.
 */
export const shouldUpgrade = (request: IncomingMessage): boolean =>
  request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(request)

/** Adds `app.upgrades`. */
export function takeUpgrades(app: FastifyInstance, maxFrameBytes: number): void {
  /** What came behind the head. */
  const heads = new WeakMap<IncomingMessage, Buffer>()
  let server: WebSocketServer | undefined

  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node has taken its own listener away.
    socket.on('error', () => socket.destroy())
    heads.set(request, head)
    const response = new ServerResponse(request)
    response.assignSocket(request.socket)
    app.routing(request, response)
  })
  // One that was answered: nobody reads from its connection any more.
  app.addHook('onResponse', async ({ raw }) => void (heads.has(raw) && raw.socket.destroy()))

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

/** A hook for after the key was looked at. Throws a `Problem` for an upgrade that cannot be. */
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

/** By host and port alone: the scheme is that of the proxy in front, if there is one. */
function isSameOrigin(origin: string, host: string): boolean {
  return URL.parse(origin)?.host === host
}

/** How a request becomes a WebSocket: which may, and what the others are told, as HTTP errors in the form that all have. */
import type { IncomingMessage } from 'node:http'
import websocket from '@fastify/websocket'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Takes WebSockets. */
    socket?: true
  }
}

export type IsAllowedOrigin = (origin: string) => boolean

/** How long a peer has to agree to the end of its connection, milliseconds. */
const CLOSE_TIMEOUT_MS = 5000

/** An option of Node's server. Any other protocol is not taken up: HTTP clients offer HTTP/2 so, and go on without. */
export const shouldUpgrade = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'

/** Before the hook that asks for a key: it sets `request.ws`, which alone tells a request that is being upgraded. */
export async function registerSockets(app: FastifyInstance, maxFrameBytes: number): Promise<void> {
  const server = { maxPayload: maxFrameBytes, perMessageDeflate: false, closeTimeout: CLOSE_TIMEOUT_MS }
  await app.register(websocket, {
    options: server,
    // What the peer sent against the protocol is answered with a close frame by the library; the log need not have it.
    errorHandler: (error, socket, request) => {
      request.log.debug({ err: error }, 'a socket failed')
      if (!('code' in error && String(error.code).startsWith('WS_ERR_'))) socket.terminate()
    },
    // Each ends by itself when what it shows does, and says so.
    preClose: (done) => done(),
  })
}

/** A hook for after the key was looked at. Throws a `Problem` for an upgrade that cannot be. */
export function refuseBadUpgrade(request: FastifyRequest, isAllowedOrigin: IsAllowedOrigin): void {
  if (!request.ws || request.is404) return
  if (!request.routeOptions.config.socket)
    throw new Problem('invalid_request', 'This route is no WebSocket; leave out the Upgrade header.')
  const { origin, 'sec-websocket-key': key = '', 'sec-websocket-version': version } = request.headers
  if (origin !== undefined && !isSameOrigin(origin, request.host) && !isAllowedOrigin(origin))
    throw new Problem('origin_refused', 'Pages of this origin may not connect; OPENHANDS_CORS_ORIGINS says which may.')
  if (version !== '13') throw upgradeRequired()
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw new Problem('invalid_request', 'Sec-WebSocket-Key is missing, or not 16 bytes in base64.')
}

export const upgradeRequired = (): Problem =>
  new Problem('upgrade_required', 'This route is a WebSocket; connect to it with a WebSocket client, version 13.')

/** `*` is any; the others have to be the same to the letter. */
export function originRule(allowed: readonly string[]): IsAllowedOrigin {
  return (origin) => allowed.includes('*') || allowed.includes(origin)
}

/** By host and port alone: the scheme is that of the proxy in front, if there is one. */
function isSameOrigin(origin: string, host: string): boolean {
  return URL.parse(origin)?.host === host
}

/** Those that have not ended by now, sockets included, which HTTP does not count among its connections. */
export function cutConnections(app: FastifyInstance): void {
  app.server.closeAllConnections()
  for (const socket of app.websocketServer.clients) socket.terminate()
}

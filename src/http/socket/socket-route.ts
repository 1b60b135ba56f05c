/** What all WebSocket routes share: admission, and the life of a WebSocket from upgrade to close. */
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import type { z } from 'zod'
import { keyEnded } from '../../access/access.ts'
import type { ErrorBody } from '../../contract/problem.ts'
import { accessOf } from '../guards/authorize.ts'
import { problemFor } from '../request/problem-handler.ts'
import { logSocket } from '../request/request-log.ts'
import { SocketConnection } from './connection.ts'
import type { FirstFrameKey } from '../guards/first-frame-key.ts'
import { endWithProblem } from './send-feed.ts'
import { upgradeRequired } from './upgrade.ts'

export type SocketRoute<Params extends z.ZodType, Query extends z.ZodType> = {
  readonly config?: FastifyContextConfig
  readonly schema: { readonly params?: Params; readonly querystring: Query }
  /** Throws before the upgrade what would fail later: the client then gets an HTTP error. */
  readonly check: (asked: SocketRequest<Params, Query>) => Promise<unknown>
  /** Resolves when everything is sent. An error is sent as an error frame, and the WebSocket is closed. */
  readonly serve: (socket: SocketConnection, asked: SocketRequest<Params, Query>) => Promise<void>
  /** The last frame of a socket that ends with an error. */
  readonly errorFrame?: (body: ErrorBody) => object
}

export type SocketRequest<Params extends z.ZodType, Query extends z.ZodType> = {
  readonly params: z.infer<Params>
  readonly query: z.infer<Query>
  readonly request: FastifyRequest
}

/** The options of a route that only serves WebSockets. */
export function socketRoute<Params extends z.ZodType, Query extends z.ZodType>(
  key: FirstFrameKey,
  route: SocketRoute<Params, Query>,
) {
  return {
    method: 'GET',
    config: { socket: true, ...route.config },
    exposeHeadRoute: false,
    schema: { hide: true, ...route.schema },
    preHandler: upgradeWith(key, route),
    handler: (): never => {
      throw upgradeRequired()
    },
  } as const
}

/** A `preHandler` that leaves requests without an upgrade to the route's handler. */
export function upgradeWith<Params extends z.ZodType, Query extends z.ZodType>(
  key: FirstFrameKey,
  route: SocketRoute<Params, Query>,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { upgrades } = request.server
    if (!upgrades.has(request)) return
    // Reveal nothing about conversations before the key is checked.
    if (request.access) await route.check(requestedBy(request))
    await upgrades.accept(request, reply, (ws) => void live(ws, request, key, route))
  }
}

/** Runs from upgrade to close; listens from the start, and never rejects. */
async function live<Params extends z.ZodType, Query extends z.ZodType>(
  ws: WebSocket,
  request: FastifyRequest,
  key: FirstFrameKey,
  route: SocketRoute<Params, Query>,
): Promise<void> {
  logEnd(ws, request)
  const socket = new SocketConnection(ws)
  try {
    if (!request.access && !(await key.admit(request, ws, socket.frames))) return
    const { ended } = accessOf(request)
    const onEnded = () => void endWithProblem(socket, keyEnded(), route.errorFrame)
    ended.addEventListener('abort', onEnded)
    // It may have ended while the conversation was opened.
    if (ended.aborted) return onEnded()
    socket.signal.addEventListener('abort', () => ended.removeEventListener('abort', onEnded))
    await route.serve(socket, requestedBy(request))
  } catch (error) {
    await endWithProblem(socket, problemFor(error, request), route.errorFrame)
  }
}

/** Both have been parsed by the route's schemas. */
function requestedBy<Params extends z.ZodType, Query extends z.ZodType>(
  request: FastifyRequest,
): SocketRequest<Params, Query> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the schemas of the route have made of them
  return { params: request.params as z.infer<Params>, query: request.query as z.infer<Query>, request }
}

function logEnd(ws: WebSocket, request: FastifyRequest): void {
  const began = performance.now()
  // A protocol violation of the peer: the library has answered it with a close frame.
  ws.on('error', (error) => request.log.debug({ err: error }, 'a socket failed'))
  ws.once('close', (close) => logSocket(request, { close, ms: Math.round(performance.now() - began) }))
}

/** What all routes of WebSockets have in common: who is let in, and the life of a socket from its upgrade to its end. */
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import type { z } from 'zod'
import { Problem } from '../../contract/problem.ts'
import { accessOf } from '../guards/authorize.ts'
import { tellProblem } from '../problem-handler.ts'
import { logSocket } from '../request-log.ts'
import { SocketConnection } from './connection.ts'
import type { FirstFrameKey } from './first-frame-key.ts'
import { endWithProblem } from './send-feed.ts'
import { upgradeRequired } from './upgrade.ts'

export type SocketRoute<Params extends z.ZodType, Query extends z.ZodType> = {
  readonly config?: FastifyContextConfig
  readonly schema: { readonly params?: Params; readonly querystring: Query }
  /** What would be thrown later, before the upgrade: the client then gets it as an HTTP error. */
  readonly check: (asked: SocketRequest<Params, Query>) => Promise<unknown>
  /** Resolves when everything is sent. What it throws is sent as an error frame, and the socket is closed. */
  readonly serve: (socket: SocketConnection, asked: SocketRequest<Params, Query>) => Promise<void>
}

export type SocketRequest<Params extends z.ZodType, Query extends z.ZodType> = {
  readonly params: z.infer<Params>
  readonly query: z.infer<Query>
  readonly request: FastifyRequest
}

/** The options of a route that is nothing else but a socket. */
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

/** A `preHandler`, which leaves requests that are not upgraded to the route's handler. */
export function upgradeWith<Params extends z.ZodType, Query extends z.ZodType>(
  key: FirstFrameKey,
  route: SocketRoute<Params, Query>,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { upgrades } = request.server
    if (!upgrades.has(request)) return
    // Before the key is checked nothing about conversations is revealed.
    if (request.access) await route.check(askedBy(request))
    await upgrades.accept(request, reply, (ws) => void live(ws, request, key, route))
  }
}

/** From the upgrade to the end; listens from the start, and never rejects. */
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
    const onEnded = () => void endWithProblem(socket, keyEnded())
    ended.addEventListener('abort', onEnded)
    socket.signal.addEventListener('abort', () => ended.removeEventListener('abort', onEnded))
    await route.serve(socket, askedBy(request))
  } catch (error) {
    await endWithProblem(socket, tellProblem(error, request))
  }
}

/** Both are what the schemas of the route have made of them. */
function askedBy<Params extends z.ZodType, Query extends z.ZodType>(
  request: FastifyRequest,
): SocketRequest<Params, Query> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the schemas of the route have made of them
  return { params: request.params as z.infer<Params>, query: request.query as z.infer<Query>, request }
}

const keyEnded = () => new Problem('unauthorized', 'The key was revoked or has expired. Connect with another one.')

function logEnd(ws: WebSocket, request: FastifyRequest): void {
  const began = performance.now()
  // What a peer sends against the protocol: the library has answered it with a close frame.
  ws.on('error', (error) => request.log.debug({ err: error }, 'a socket failed'))
  ws.once('close', (close) => logSocket(request, { close, ms: Math.round(performance.now() - began) }))
}

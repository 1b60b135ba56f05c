/** The routes of the AI SDK. What they do is loaded with the first request: a server without them pays for their names only. */
import type { FastifyContextConfig, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Metrics } from '../../telemetry/metrics.ts'
import { addClientSockets } from '../shared/client-sockets.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { redactorOf } from '../shared/redactor-of.ts'
import { ownUnknownRoutes } from '../shared/unknown-routes.ts'
import type * as Loaded from './chat-api.ts'
import type { ChatSocketDeps } from './chat-socket.ts'
import type { Protocol } from '../shared/protocol.ts'

type SocketDeps = ChatSocketDeps & { readonly metrics: Metrics }
type Handler = (api: typeof Loaded, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
type ChatAccess = FastifyContextConfig & Required<Pick<FastifyContextConfig, 'scopes' | 'ofProfiles'>>

const aiSdkRoutes: FastifyPluginAsync<GatewayDeps & SocketDeps> = async (app, deps) => {
  addClientSockets(app, {
    path: CHAT,
    // Each request on it has the scopes of its route.
    config: { scopes: ['read'], ofProfiles: 'free' },
    query: z.looseObject({}),
    metrics: deps.metrics,
    lastWords,
    async serve(socket, request) {
      const { serveChats } = await import('./chat-socket.ts')
      await serveChats(socket, request, deps)
    },
  })
  const load = () => import('./chat-api.ts')
  app.setErrorHandler(async (error, request, reply) => {
    const { sendUiError } = await load()
    return sendUiError(error, request, reply, await redactorOf(deps, request))
  })
  await ownUnknownRoutes(app, '/ai')
  const conversationInBody = async (_: unknown, request: FastifyRequest) => (await load()).chatInRequest(deps, request)
  const add = (method: 'GET' | 'POST', url: string, access: ChatAccess, handle: Handler) =>
    app.route({
      method,
      url,
      exposeHeadRoute: false,
      config: { ...access, conversationInBody },
      async handler(request, reply) {
        const answer = await handle(await load(), request, reply)
        // A stream has been sent.
        if (!reply.sent) return reply.send(answer)
        return reply
      },
    })

  // What the agent says is in the answers. Decisions need the scope `approve`, too.
  const posting = { scopes: ['read', 'write'], ofProfiles: 'free' } as const
  const reading = { scopes: ['read'], ofProfiles: 'free' } as const
  const stopping = { scopes: ['write'], ofProfiles: 'free' } as const
  add('POST', CHAT, posting, (api, request, reply) => api.submitChat(deps, request, reply))
  const chat = `${CHAT}/:chat_id`
  add('GET', `${chat}/stream`, reading, (api, request, reply) => api.resumeChat(deps, request, reply))
  add('GET', `${chat}/messages`, reading, (api, request) => api.listMessages(deps, request))
  add('POST', `${chat}/stop`, stopping, (api, request) => api.stopChat(deps, request))
}

const CHAT = '/ai/chat'

/** An error of no request, so that clients only learn that the socket has closed. */
const lastWords = (body: object) => ({
  type: 'error',
  requestId: '',
  errorText: String(Object(body).message ?? Object(body).error),
})

export const AI_SDK: Protocol = { routes: aiSdkRoutes }

/** The routes of the OpenAI API. What they do is loaded with the first request: a server without them pays for their names only. */
import type { FastifyContextConfig, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type * as Loaded from './gateway.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { redactorOf } from '../shared/redactor-of.ts'
import { parseResponseId } from './response-id.ts'

type Gateway = typeof Loaded
type Method = 'GET' | 'POST' | 'DELETE'
type RouteAccess = FastifyContextConfig & Required<Pick<FastifyContextConfig, 'scopes' | 'ofProfiles'>>
type Handler = (gateway: Gateway, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

export const openAiRoutes: FastifyPluginAsync<GatewayDeps> = async (app, deps) => {
  const load = () => import('./gateway.ts')
  app.setErrorHandler(async (error, request, reply) => {
    const { sendError } = await load()
    return sendError(error, request, reply, await redactorOf(deps, request))
  })
  const add = ([method, url]: readonly [Method, string], access: RouteAccess, handle: Handler) =>
    app.route({
      method,
      url,
      exposeHeadRoute: false,
      config: access,
      async handler(request, reply) {
        const answer = await handle(await load(), request, reply)
        // A stream has been sent.
        if (!reply.sent) return reply.send(answer)
        return reply
      },
    })

  const reading = { scopes: ['read'], ofProfiles: 'free' } as const
  // What the agent says is in the answers. What such a request does is limited as the routes that do the same.
  const asking = { scopes: ['read', 'write'], ofProfiles: 'free' } as const
  add(['GET', '/v1/models'], reading, (gateway, request) => gateway.models(deps, request))
  add(['GET', '/v1/models/:model'], reading, (gateway, request) => gateway.model(deps, request))
  const creating = { ...asking, conversationInBody: conversationContinued }
  add(['POST', '/v1/responses'], creating, (gateway, request, reply) => gateway.createResponse(deps, request, reply))
  const chat = '/v1/chat/completions'
  const chatting = {
    ...asking,
    conversationInBody: async (_: unknown, request: FastifyRequest) => (await load()).conversationOfChat(deps, request),
  }
  add(['POST', chat], chatting, (gateway, request, reply) => gateway.createChatCompletion(deps, request, reply))
  const one = '/v1/responses/:response_id'
  const own = { conversationOf: conversationOfResponse }
  const readingOne = { ...reading, ...own }
  add(['GET', one], readingOne, (gateway, request, reply) => gateway.getResponse(deps, request, reply))
  const deleting = { scopes: ['write'], ofProfiles: 'free', ...own } as const
  add(['DELETE', one], deleting, (gateway, request) => gateway.deleteResponse(deps, request))
  const cancelling = { ...asking, ...own }
  add(['POST', `${one}/cancel`], cancelling, (gateway, request) => gateway.cancelResponse(deps, request))
  add(['GET', `${one}/input_items`], readingOne, (gateway, request) => gateway.listInputItems(deps, request))
}

const idOf = (text: unknown) => (typeof text === 'string' ? parseResponseId(text)?.conversationId : undefined)

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
const conversationOfResponse = (params: unknown) => idOf((params as { response_id: string }).response_id)

const conversationContinued = (body: unknown) =>
  typeof body === 'object' && body !== null && 'previous_response_id' in body
    ? idOf(body.previous_response_id)
    : undefined

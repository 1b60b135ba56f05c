/** The routes of the OpenAI API. What they do is loaded with the first request: a server without them pays for their names only. */
import type { FastifyContextConfig, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { addClientSockets } from '../shared/client-sockets.ts'
import type * as Loaded from './gateway.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { redactorOf } from '../shared/redactor-of.ts'
import { ownUnknownRoutes } from '../shared/unknown-routes.ts'
import { CREATION_PREFIX, parseConversationId, parseResponseId } from './response-id.ts'
import type { ResponsesSocketDeps } from './responses-socket.ts'
import type { LeftoverDeps } from './watch-leftovers.ts'
import { watchLeftovers } from './watch-leftovers.ts'
import type { Protocol } from '../shared/protocol.ts'

type Gateway = typeof Loaded
type Method = 'GET' | 'POST' | 'DELETE'
type RouteAccess = FastifyContextConfig & Required<Pick<FastifyContextConfig, 'scopes' | 'ofProfiles'>>
type Handler = (gateway: Gateway, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

const reading = { scopes: ['read'], ofProfiles: 'free' } as const
// What the agent says is in the answers. What such a request does is limited as the routes that do the same.
const posting = { scopes: ['read', 'write'], ofProfiles: 'free' } as const

type AddRoute = (route: readonly [Method, string], access: RouteAccess, handle: Handler) => unknown

const openAiRoutes: FastifyPluginAsync<GatewayDeps & LeftoverDeps & ResponsesSocketDeps> = async (app, deps) => {
  addClientSockets(app, {
    path: RESPONSES,
    config: posting,
    query: z.looseObject({}),
    metrics: deps.metrics,
    lastWords,
    async serve(socket, request) {
      const { serveResponses } = await import('./responses-socket.ts')
      await serveResponses(socket, request, deps)
    },
  })
  watchLeftovers(app, deps)
  const load = () => import('./gateway.ts')
  app.setErrorHandler(async (error, request, reply) => {
    const { sendError } = await load()
    return sendError(error, request, reply, await redactorOf(deps, request))
  })
  await ownUnknownRoutes(app, '/v1')
  const add: AddRoute = ([method, url], access, handle) =>
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

  add(['GET', '/v1/models'], reading, (gateway, request) => gateway.models(deps, request))
  add(['GET', '/v1/models/:model'], reading, (gateway, request) => gateway.model(deps, request))
  const conversationInBody = async (body: unknown) =>
    conversationInFields(body) ?? (await load()).conversationAnswered(body)
  const creating = { ...posting, conversationInBody, creationPrefix: CREATION_PREFIX }
  add(['POST', RESPONSES], creating, (gateway, request, reply) => gateway.createResponse(deps, request, reply))
  const chat = '/v1/chat/completions'
  const chatting = {
    ...posting,
    conversationInBody: async (_: unknown, request: FastifyRequest) => (await load()).conversationOfChat(deps, request),
  }
  add(['POST', chat], chatting, (gateway, request, reply) => gateway.createChatCompletion(deps, request, reply))
  const one = '/v1/responses/:response_id'
  const own = { conversationOf: conversationOfResponse }
  const readingOne = { ...reading, ...own }
  add(['GET', one], readingOne, (gateway, request, reply) => gateway.getResponse(deps, request, reply))
  const deleting = { scopes: ['write'], ofProfiles: 'free', ...own } as const
  add(['DELETE', one], deleting, (gateway, request) => gateway.deleteResponse(deps, request))
  const cancelling = { ...posting, ...own }
  add(['POST', `${one}/cancel`], cancelling, (gateway, request) => gateway.cancelResponse(deps, request))
  addConversations(add, deps)
  add(['GET', `${one}/input_items`], readingOne, (gateway, request) => gateway.listInputItems(deps, request))
}

export const OPENAI: Protocol = { routes: openAiRoutes }

const RESPONSES = '/v1/responses'

/** Clients read it as an error. */
const lastWords = (body: object) => ({ type: 'error', code: Object(body).error, ...body })

function addConversations(add: AddRoute, deps: GatewayDeps): void {
  const all = '/v1/conversations'
  // Another instance makes it while this one stops.
  const creating = { ...posting, conversationInBody: () => undefined, creationPrefix: CREATION_PREFIX }
  add(['POST', all], creating, (gateway, request) => gateway.createConversationObject(deps, request))
  const one = `${all}/:conversation_id`
  const own = { conversationOf: conversationNamed }
  const [readingOne, changingOne] = [
    { ...reading, ...own },
    { ...posting, ...own },
  ]
  add(['GET', one], readingOne, (gateway, request) => gateway.getConversationObject(deps, request))
  add(['POST', one], changingOne, (gateway, request) => gateway.updateConversationObject(deps, request))
  const deleting = { scopes: ['write'], ofProfiles: 'free', ...own } as const
  add(['DELETE', one], deleting, (gateway, request) => gateway.deleteConversationObject(deps, request))
  add(['GET', `${one}/items`], readingOne, (gateway, request) => gateway.listConversationItems(deps, request))
  add(['POST', `${one}/items`], changingOne, (gateway, request) => gateway.createConversationItems(deps, request))
  const item = `${one}/items/:item_id`
  add(['GET', item], readingOne, (gateway, request) => gateway.getConversationItem(deps, request))
  add(['DELETE', item], deleting, (gateway) => gateway.deleteConversationItem())
}

function conversationNamed(params: unknown): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
  const { conversation_id: name } = params as { conversation_id: string }
  return parseConversationId(name)
}

const idOf = (text: unknown) => (typeof text === 'string' ? parseResponseId(text)?.conversationId : undefined)

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
const conversationOfResponse = (params: unknown) => idOf((params as { response_id: string }).response_id)

function conversationInFields(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  if ('previous_response_id' in body && body.previous_response_id !== null) return idOf(body.previous_response_id)
  if (!('conversation' in body)) return undefined
  const { conversation } = body
  const isObject = typeof conversation === 'object' && conversation !== null && 'id' in conversation
  const name = isObject ? conversation.id : conversation
  return typeof name === 'string' ? parseConversationId(name) : undefined
}

/** The routes of the OpenAI API. What they do is loaded with the first request: a server without them pays for their names only. */
import type { FastifyContextConfig, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type * as Loaded from './gateway.ts'
import type { GatewayDeps } from './gateway-deps.ts'

type Gateway = typeof Loaded
type Method = 'GET' | 'POST' | 'DELETE'
type RouteAccess = Required<Pick<FastifyContextConfig, 'scopes' | 'ofProfiles'>>
type Handler = (gateway: Gateway, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

export const openAiRoutes: FastifyPluginAsync<GatewayDeps> = async (app, deps) => {
  const load = () => import('./gateway.ts')
  app.setErrorHandler(async (error, request, reply) => (await load()).sendError(error, request, reply))
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
  add(['POST', '/v1/responses'], asking, (gateway, request, reply) => gateway.createResponse(deps, request, reply))
  const one = '/v1/responses/:response_id'
  add(['GET', one], reading, (gateway, request, reply) => gateway.getResponse(deps, request, reply))
  const deleting = { scopes: ['write'], ofProfiles: 'free' } as const
  add(['DELETE', one], deleting, (gateway, request) => gateway.deleteResponse(deps, request))
  add(['POST', `${one}/cancel`], asking, (gateway, request) => gateway.cancelResponse(deps, request))
  add(['GET', `${one}/input_items`], reading, (gateway, request) => gateway.listInputItems(deps, request))
}

/** The routes of the OpenAI API. What they do is loaded with the first request: a server without them pays for their names only. */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Scope } from '../../contract/key.ts'
import type * as Loaded from './gateway.ts'
import type { GatewayDeps } from './gateway-deps.ts'

type Gateway = typeof Loaded
type Handler = (gateway: Gateway, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

export const openAiRoutes: FastifyPluginAsync<GatewayDeps> = async (app, deps) => {
  const load = () => import('./gateway.ts')
  app.setErrorHandler(async (error, request, reply) => (await load()).sendError(error, request, reply))
  const add = (method: 'GET' | 'POST' | 'DELETE', url: string, scopes: readonly Scope[], handle: Handler) =>
    app.route({
      method,
      url,
      exposeHeadRoute: false,
      config: { scopes },
      async handler(request, reply) {
        const answer = await handle(await load(), request, reply)
        // A stream has been sent.
        if (!reply.sent) return reply.send(answer)
        return reply
      },
    })

  // What the agent says is in the answers.
  const both = ['read', 'write'] as const
  add('GET', '/v1/models', ['read'], (gateway, request) => gateway.models(deps, request))
  add('GET', '/v1/models/:model', ['read'], (gateway, request) => gateway.model(deps, request))
  add('POST', '/v1/responses', both, (gateway, request, reply) => gateway.createResponse(deps, request, reply))
  const one = '/v1/responses/:response_id'
  add('GET', one, ['read'], (gateway, request, reply) => gateway.getResponse(deps, request, reply))
  add('DELETE', one, ['write'], (gateway, request) => gateway.deleteResponse(deps, request))
  add('POST', `${one}/cancel`, both, (gateway, request) => gateway.cancelResponse(deps, request))
  add('GET', `${one}/input_items`, ['read'], (gateway, request) => gateway.listInputItems(deps, request))
}

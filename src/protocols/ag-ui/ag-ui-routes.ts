/** The routes of AG-UI. What they do is loaded with the first request. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { redactorOf } from '../shared/redactor-of.ts'
import type { Protocol } from '../shared/protocol.ts'

const agUiRoutes: FastifyPluginAsync<GatewayDeps> = async (app, deps) => {
  const load = () => import('./ag-ui.ts')
  app.setErrorHandler(async (error, request, reply) => {
    const { sendProblem } = await load()
    return sendProblem(error, request, reply, await redactorOf(deps, request))
  })
  const thread = {
    ofProfiles: 'free',
    conversationInBody: async (_: unknown, request: FastifyRequest) =>
      (await load()).conversationOfThread(deps, request),
  } as const
  app.route({
    method: 'POST',
    url: '/ag-ui/:profile',
    // What the agent says is in the answer.
    config: { scopes: ['read', 'write'], ...thread },
    async handler(request, reply) {
      await (await load()).runAgent(deps, request, reply)
      return reply
    },
  })
  app.route({
    method: 'POST',
    url: '/ag-ui/:profile/stop',
    config: { scopes: ['write'], ...thread },
    handler: async (request, reply) => reply.send(await (await load()).stopAgent(deps, request)),
  })
}

export const AG_UI: Protocol = { routes: agUiRoutes }

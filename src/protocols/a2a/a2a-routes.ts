/** The routes of A2A 1.0, in both of its bindings. What they do is loaded with the first request. */
import type { FastifyContextConfig, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { acceptJsonOnly } from '../../http/request/parse-input.ts'
import type * as Loaded from './a2a.ts'
import type { OperationName } from './bindings.ts'
import type { A2aDeps } from './call.ts'
import { ownUnknownRoutes } from '../shared/unknown-routes.ts'
import { parseTaskId } from './task-id.ts'
import type { Protocol } from '../shared/protocol.ts'

type RouteAccess = FastifyContextConfig & Required<Pick<FastifyContextConfig, 'scopes' | 'ofProfiles'>>
type Api = typeof Loaded

const reading = { scopes: ['read'], ofProfiles: 'free' } as const
// What the agent says is in the answers. Decisions need the scope `approve`, too.
const posting = { scopes: ['read', 'write'], ofProfiles: 'free' } as const

const a2aRoutes: FastifyPluginAsync<A2aDeps> = async (app, deps) => {
  const load = () => import('./a2a.ts')
  app.get('/.well-known/agent-card.json', { config: { public: true } }, async (request, reply) => {
    void reply.header('cache-control', 'no-cache')
    return reply.send((await load()).agentCard(request, deps))
  })
  const conversationInBody = async (_: unknown, request: FastifyRequest) =>
    (await load()).conversationOfCall(deps, request)
  await app.register(rpcRoute, { ...deps, load, conversationInBody })
  await app.register(httpRoutes, { ...deps, load, conversationInBody })
}

export const A2A: Protocol = {
  routes: a2aRoutes,
  deliveryBody: async (...delivery) => (await import('./push-body.ts')).pushBody(...delivery),
}

type BindingDeps = A2aDeps & {
  readonly load: () => Promise<Api>
  readonly conversationInBody: (body: unknown, request: FastifyRequest) => Promise<string | undefined>
}

const rpcRoute: FastifyPluginAsync<BindingDeps> = async (app, { load, conversationInBody, ...deps }) => {
  app.setErrorHandler(async (error, request, reply) => (await load()).sendRpcError(deps, error, request, reply))
  await ownUnknownRoutes(app, '/a2a')
  app.route({
    method: 'POST',
    url: '/a2a',
    // Methods that change something require more.
    config: { ...reading, conversationInBody },
    handler: async (request, reply) => (await load()).answerRpc(deps, request, reply),
  })
}

const httpRoutes: FastifyPluginAsync<BindingDeps> = async (app, { load, conversationInBody, ...deps }) => {
  acceptJsonOnly(app, ['application/json', 'application/a2a+json'])
  app.setErrorHandler(async (error, request, reply) => (await load()).sendHttpError(deps, error, request, reply))
  await ownUnknownRoutes(app, '/a2a/v1', '/.well-known/agent-card.json')
  const add = (method: 'GET' | 'POST' | 'DELETE', path: string, access: RouteAccess, name: OperationName) =>
    app.route({
      method,
      url: `/a2a/v1${path}`,
      exposeHeadRoute: false,
      config: access,
      handler: async (request: FastifyRequest, reply: FastifyReply) =>
        (await load()).answerHttp(deps, name, request, reply),
    })
  // A colon is the beginning of a parameter, and two are a colon.
  add('POST', '/message::send', { ...posting, conversationInBody }, 'SendMessage')
  add('POST', '/message::stream', { ...posting, conversationInBody }, 'SendStreamingMessage')
  add('GET', '/extendedAgentCard', reading, 'GetExtendedAgentCard')
  add('GET', '/tasks', { ...reading, conversationInBody }, 'ListTasks')
  const own = { conversationOf: conversationOfPath }
  add('GET', '/tasks/:id', { ...reading, ...own }, 'GetTask')
  add('POST', '/tasks/:id([^:]+)::cancel', { ...posting, ...own }, 'CancelTask')
  for (const method of ['GET', 'POST'] as const)
    add(method, '/tasks/:id([^:]+)::subscribe', { ...reading, ...own }, 'SubscribeToTask')
  const configs = '/tasks/:taskId/pushNotificationConfigs'
  add('POST', configs, { ...posting, ...own }, 'CreateTaskPushNotificationConfig')
  add('GET', configs, { ...reading, ...own }, 'ListTaskPushNotificationConfigs')
  add('GET', `${configs}/:id`, { ...reading, ...own }, 'GetTaskPushNotificationConfig')
  add('DELETE', `${configs}/:id`, { ...posting, ...own }, 'DeleteTaskPushNotificationConfig')
}

function conversationOfPath(params: unknown): string | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameters of the routes
  const { id = '', taskId = id } = params as { id?: string; taskId?: string }
  return parseTaskId(taskId)?.conversationId
}

/** The route of the Model Context Protocol. What it does is loaded with the first request. */
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { originRule } from '../../http/guards/cors.ts'
import { ownUnknownRoutes } from '../shared/unknown-routes.ts'
import type { McpDeps } from './served-agents.ts'
import type { Protocol } from '../shared/protocol.ts'

const mcpServerRoutes: FastifyPluginAsync<McpDeps> = async (app, deps) => {
  routeMcp(app, deps.corsOrigins, async (request, reply) => await (await load()).serveMcp(deps, request, reply))
  await ownUnknownRoutes(app, '/mcp')
}

export const MCP: Protocol = { routes: mcpServerRoutes }

const load = () => import('./serve-mcp.ts')

type Serve = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Adds the route of one server of the protocol, whatever its tools are. */
export function routeMcp(app: FastifyInstance, corsOrigins: readonly string[], serve: Serve): void {
  app.setErrorHandler(async (error, request, reply) => (await load()).sendRpcError(error, request, reply))
  const isAllowedOrigin = originRule(corsOrigins)
  // The protocol requires it: with another name for the address of this host, a page could reach a local server.
  app.addHook('onRequest', async ({ headers: { origin }, host }) => {
    if (origin === undefined || isAllowedOrigin(origin) || isOwnPage(origin, host)) return
    throw new Problem(
      'origin_refused',
      'Pages of this origin must not send requests. Add it to OPENHANDS_CORS_ORIGINS.',
    )
  })
  app.route({
    method: 'POST',
    url: '/mcp',
    config: {
      // What the agents say is in the answers. The tools that change something require more.
      scopes: ['read'],
      ofProfiles: 'free',
      conversationInBody: async (body) => (await load()).conversationOfCall(body),
    },
    handler: serve,
  })
}

const LOCAL_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

function isOwnPage(origin: string, host: string): boolean {
  const url = URL.parse(origin)
  return url !== null && url.host === host && LOCAL_NAMES.has(url.hostname)
}

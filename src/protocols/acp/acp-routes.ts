/** The route of the Agent Client Protocol, a WebSocket. What it does is loaded with the first one. */
import type { FastifyPluginAsync } from 'fastify'
import { z } from 'zod'
import { addClientSockets } from '../shared/client-sockets.ts'
import type { AcpDeps } from './serve-acp.ts'
import { ownUnknownRoutes } from '../shared/unknown-routes.ts'
import type { Protocol } from '../shared/protocol.ts'

const AcpQuery = z.object({ profile: z.string().min(1).default('default') })

const acpRoutes: FastifyPluginAsync<AcpDeps> = async (app, deps) => {
  app.setErrorHandler(async (error, request, reply) => {
    const { sendRefusal } = await import('./send-refusal.ts')
    return sendRefusal(error, request, reply)
  })
  await ownUnknownRoutes(app, '/acp')
  addClientSockets(app, {
    path: '/acp',
    // Each method has the scope of the route that it is equivalent to.
    config: { scopes: ['read'], ofProfiles: 'free' },
    query: AcpQuery,
    metrics: deps.metrics,
    lastWords,
    async serve(socket, request, { profile }) {
      const { serveAcp } = await import('./serve-acp.ts')
      await serveAcp(socket, request, { ...deps, profile })
    },
  })
}

export const ACP: Protocol = { routes: acpRoutes }

/** A notification, so that clients that do not know it ignore it. */
const lastWords = (params: object) => ({ jsonrpc: '2.0', method: '_error', params })

/** The route of the Agent Client Protocol, a WebSocket. What it does is loaded with the first one. */
import type { FastifyPluginAsync } from 'fastify'
import { z } from 'zod'
import { CLOSE_CODES } from '../../contract/socket.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { socketRoute } from '../../http/socket/socket-route.ts'
import { createStreamSlots } from '../../http/streams/stream-slots.ts'
import type { AcpDeps } from './serve-acp.ts'

/** Clients of one key at a time. Each can have many sessions. */
const MAX_PER_KEY = 64

const AcpQuery = z.object({ profile: z.string().min(1).default('default') })

export const acpRoutes: FastifyPluginAsync<AcpDeps> = async (app, deps) => {
  const slots = createStreamSlots(MAX_PER_KEY, 'this key for /acp')
  const open = new Set<SocketConnection>()
  // The agents work on, and clients connect again.
  app.addHook('preClose', async () => {
    await Promise.all(
      [...open].map((socket) => socket.end(lastWords({ error: 'server_closing' }), CLOSE_CODES.server_closing)),
    )
  })
  app.route({
    url: '/acp',
    ...socketRoute(app.firstFrameKey, {
      // Each method has the scope of the route that it is equivalent to.
      config: { scopes: ['read'], ofProfiles: 'free' },
      schema: { querystring: AcpQuery },
      errorFrame: lastWords,
      async check({ request }) {
        slots.take(accessOf(request).key?.id ?? '')() // checks before the upgrade that a slot is free; it is taken afterwards
      },
      async serve(socket, { query, request }) {
        using stack = new DisposableStack()
        stack.defer(slots.take(accessOf(request).key?.id ?? ''))
        open.add(socket)
        stack.defer(() => open.delete(socket))
        const onEnd = deps.metrics.streamOpened('websocket')
        stack.defer(() => onEnd({ lagged: false }))
        const { serveAcp } = await import('./serve-acp.ts')
        await serveAcp(socket, request, { ...deps, profile: query.profile })
      },
    }),
  })
}

/** A notification, so that clients that do not know it ignore it. */
const lastWords = (params: object) => ({ jsonrpc: '2.0', method: '_error', params })

/** Keeps a conversation open while a request for it is in progress, including streams. A WebSocket holds its own. */
import type { FastifyInstance } from 'fastify'
import type { ConversationManager } from '../conversations/registry/manager.ts'

/** Adds the hook. Only requests whose key was checked keep a conversation open. */
export function keepConversationsOpen(app: FastifyInstance, manager: Pick<ConversationManager, 'hold'>): void {
  app.addHook('onRequest', async (request, reply) => {
    const { id } = (request.params ?? {}) as { id?: string }
    // After an upgrade, the response never finishes.
    if (id === undefined || request.is404 || app.upgrades.has(request) || reply.raw.closed) return
    // The end of the response or of the connection, whichever is first.
    reply.raw.once('close', manager.hold(id.toLowerCase()))
  })
}

/** Keeps a conversation open while a request about it is under way, streams among them. A socket holds its own. */
import type { FastifyInstance } from 'fastify'
import type { ConversationManager } from '../conversations/registry/manager.ts'

/** Adds the hook. For requests whose key was looked at: others keep nothing open. */
export function keepConversationsOpen(app: FastifyInstance, manager: Pick<ConversationManager, 'hold'>): void {
  app.addHook('onRequest', async (request, reply) => {
    const { id } = (request.params ?? {}) as { id?: string }
    // After an upgrade there is no end of an answer.
    if (id === undefined || request.is404 || app.upgrades.has(request) || reply.raw.closed) return
    // The end of the answer, or of the connection, whichever is first.
    reply.raw.once('close', manager.hold(id.toLowerCase()))
  })
}

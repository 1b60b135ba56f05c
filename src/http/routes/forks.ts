/** The route that forks a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ConversationView, ForkConversation } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { KeyHeader, keyOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf } from '../guards/authorize.ts'
import { hidingDeleted, mayCreate, ownKey } from '../guards/limited-requests.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const forkRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.post(
    '/conversations/:id/fork',
    {
      schema: {
        ...describe('forkConversation', 'Fork a conversation: create one that continues from a point of this one', [
          ...CONVERSATION,
          'conversation_exists',
          'conversation_from_newer_version',
          'cursor_ahead',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'workdir_too_large',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: ForkConversation.optional(),
        response: { 201: ConversationView },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const body = request.body ?? ForkConversation.parse({})
      const access = accessOf(request)
      mayCreate(access)
      // Keys of creates and forks share a store, so the id of the original is part of the request's hash.
      const idempotency = ownKey(access, keyOf(request)?.with({ from: id, ...body }))
      const fork = await hidingDeleted(access, () => manager.fork(id, body, idempotency))
      return reply.code(201).header('location', `/conversations/${fork.id}`).send(fork)
    },
  )
}

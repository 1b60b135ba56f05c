/** The route that takes a conversation back to an earlier event. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { RewindOutcome, RewindQuery, RewindRequest } from '../../contract/rewind.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf } from '../guards/authorize.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'

export const rewindRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.post(
    '/conversations/:id/rewind',
    {
      schema: {
        ...describe('rewindConversation', 'Take the conversation back to an earlier event', [
          ...CONVERSATION,
          'conversation_changed',
          'cursor_ahead',
          'conversation_running',
          'conversation_from_newer_version',
          'idempotency_mismatch',
          'storage_full',
        ]),
        params: ById,
        querystring: RewindQuery,
        headers: KeyHeader,
        body: RewindRequest,
        response: { 200: RewindOutcome },
      },
    },
    async (request) => {
      const conversation = await manager.open(request.params.id)
      const access = accessOf(request)
      const { dry_run: dryRun = false } = request.query
      const options = { dryRun, by: access.key?.name, idempotency: idempotencyOf(request) }
      const { processes, ...outcome } = await conversation.rewind(request.body, options)
      return { ...outcome, ...(processes && access.allows('read') && { processes }) }
    },
  )
}

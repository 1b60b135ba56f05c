/** The route that turns the confirmation of tool calls on and off. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ConversationView } from '../../contract/conversation.ts'
import { SetConfirmation } from '../../contract/values/permission.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const confirmationRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('permissions')

  app.post(
    '/conversations/:id/confirmation',
    {
      schema: {
        ...describe(
          'setConfirmation',
          'Turn confirmation of tool calls on or off; calls that already wait still need a decision',
          [...CONVERSATION, 'storage_full'],
        ),
        params: ById,
        body: SetConfirmation,
        response: { 200: ConversationView },
      },
    },
    async (request) => {
      return (await manager.open(request.params.id)).setConfirmation(request.body.enabled)
    },
  )
}

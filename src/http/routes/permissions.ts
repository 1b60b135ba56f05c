/** The route that refuses all that waits for a user. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { RejectRequest } from '../../contract/values/permission.ts'
import { RequestAccepted } from '../../contract/request.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf } from '../guards/authorize.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const permissionRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('permissions')

  app.post(
    '/conversations/:id/reject',
    {
      schema: {
        ...describe('reject', 'Refuse all waiting calls and end the run', [
          ...CONVERSATION,
          'storage_full',
          'nothing_pending',
        ]),
        params: ById,
        body: RejectRequest.optional(),
        response: { 200: RequestAccepted },
      },
    },
    async (request) =>
      (await manager.open(request.params.id)).permissions.reject(request.body?.reason, accessOf(request).key?.name),
  )
}

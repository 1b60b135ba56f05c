/** The route that rotates the signing secret of a callback. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { CreatedCallback, RotateCallbackSecret } from '../../../contract/callback.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { ByCallback, CALLBACK } from './callbacks.ts'

export const callbackSecretRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (
  app,
  { manager },
) => {
  const describe = describeRoute('callbacks')

  app.post(
    '/conversations/:id/callbacks/:callback_id/rotate-secret',
    {
      schema: {
        ...describe('rotateCallbackSecret', 'Replace the signing secret of a callback; both sign during the overlap', [
          ...CALLBACK,
          'storage_full',
        ]),
        params: ByCallback,
        body: RotateCallbackSecret.optional(),
        response: { 200: CreatedCallback },
      },
    },
    async (request) => {
      const { id, callback_id } = request.params
      const { webhooks } = await manager.open(id)
      return await webhooks.rotateSecret(callback_id, request.body ?? RotateCallbackSecret.parse({}))
    },
  )
}

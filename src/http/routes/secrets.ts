/** Routes for a conversation's secrets: values are written, only names are returned. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { PutSecrets, SecretNames } from '../../contract/secret.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf } from '../guards/authorize.ts'
import { mayPutSecrets } from '../guards/limited-requests.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const secretRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('secrets')

  app.put(
    '/conversations/:id/secrets',
    {
      schema: {
        ...describe('putSecrets', 'Add or replace secrets; allowed during a run, other secrets are kept', [
          ...CONVERSATION,
          'storage_full',
        ]),
        params: ById,
        body: PutSecrets,
        response: { 200: SecretNames },
      },
    },
    async (request) => {
      mayPutSecrets(accessOf(request), request.body.secrets)
      const { secrets } = await manager.open(request.params.id)
      return listOf(await secrets.put(request.body.secrets))
    },
  )

  app.get(
    '/conversations/:id/secrets',
    {
      schema: {
        ...describe('listSecrets', 'List the names of the secrets', CONVERSATION),
        params: ById,
        response: { 200: SecretNames },
      },
    },
    async (request) => listOf((await manager.open(request.params.id)).secrets.names()),
  )

  app.delete(
    '/conversations/:id/secrets/:key',
    {
      schema: {
        ...describe('deleteSecret', 'Delete a secret; idempotent', [...CONVERSATION, 'storage_full']),
        params: z.strictObject({ id: ConversationId, key: z.string() }),
        response: { 204: z.undefined().describe('New commands do not receive it.') },
      },
    },
    async (request, reply) => {
      const { secrets } = await manager.open(request.params.id)
      await secrets.remove(request.params.key)
      return reply.code(204).send()
    },
  )
}

const listOf = (items: string[]): SecretNames => ({ items, next_page_id: null })

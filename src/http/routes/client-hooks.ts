/** Routes for hooks that clients answer: register and remove them. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { ClientHooksList, ClientHooksView, HookClientName, PutClientHooks } from '../../contract/hooks/client-hooks.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

type Deps = { manager: ConversationManager }

const OneClient = z.strictObject({ id: ConversationId, client: HookClientName })
const CHANGE = [...CONVERSATION, 'conversation_from_newer_version', 'storage_full'] as const

export const clientHookRoutes: FastifyPluginAsyncZod<Deps> = async (app, { manager }) => {
  const describe = describeRoute('hooks')

  app.get(
    '/conversations/:id/client-hooks',
    {
      schema: {
        ...describe('listClientHooks', 'List the clients that answer hooks, with their hooks', CONVERSATION),
        params: ById,
        response: { 200: ClientHooksList },
      },
    },
    async (request) => (await manager.open(request.params.id)).clientHooks.list(),
  )

  app.put(
    '/conversations/:id/client-hooks/:client',
    {
      schema: {
        ...describe('putClientHooks', 'Register hooks that this client answers; replaces its former ones', CHANGE),
        params: OneClient,
        body: PutClientHooks,
        response: { 200: ClientHooksView },
      },
    },
    async (request) => {
      const { clientHooks } = await manager.open(request.params.id)
      return await clientHooks.register(request.params.client, request.body)
    },
  )

  app.delete(
    '/conversations/:id/client-hooks/:client',
    {
      schema: {
        ...describe('deleteClientHooks', 'Remove the hooks of a client; idempotent', CHANGE),
        params: OneClient,
        response: { 204: z.undefined().describe('The client is not asked any more.') },
      },
    },
    async (request, reply) => {
      const { clientHooks } = await manager.open(request.params.id)
      await clientHooks.remove(request.params.client)
      return reply.code(204).send()
    },
  )
}

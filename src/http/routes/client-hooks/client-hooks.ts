/** Routes for hooks that clients answer: register and remove them, list what is asked, and answer. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../../contract/conversation.ts'
import {
  ClientHooksList,
  ClientHooksView,
  HookAnswerAccepted,
  HookClientName,
  HookRequests,
  ListHookRequests,
  PostHookAnswer,
  PutClientHooks,
} from '../../../contract/hooks/client-hooks.ts'
import type { ConversationManager } from '../../../conversations/registry/manager.ts'
import { describeRoute } from '../../describe-route.ts'
import { ById, CONVERSATION } from '../conversation-params.ts'

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
    async ({ params, body }) => (await manager.open(params.id)).clientHooks.register(params.client, body),
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
    async ({ params }, reply) => {
      const { clientHooks } = await manager.open(params.id)
      await clientHooks.remove(params.client)
      return reply.code(204).send()
    },
  )
}

export const hookRequestRoutes: FastifyPluginAsyncZod<Deps> = async (app, { manager }) => {
  const describe = describeRoute('hooks')

  app.get(
    '/conversations/:id/hook-requests',
    {
      schema: {
        ...describe('listHookRequests', 'List the hooks that wait for an answer of a client', CONVERSATION),
        params: ById,
        querystring: ListHookRequests,
        response: { 200: HookRequests },
      },
    },
    async (request) => (await manager.open(request.params.id)).clientHooks.requests.pending(request.query.client),
  )

  app.post(
    '/conversations/:id/hook-requests/:request_id',
    {
      schema: {
        ...describe('answerHook', 'Answer a hook; the first answer counts', [
          ...CONVERSATION,
          'hook_request_not_found',
          'already_answered',
          'hook_request_ended',
        ]),
        params: z.strictObject({
          id: ConversationId,
          request_id: z.uuid().toLowerCase().describe('Of the `HookRequest`.'),
        }),
        body: PostHookAnswer,
        response: { 200: HookAnswerAccepted },
      },
    },
    async (request) => {
      const { clientHooks } = await manager.open(request.params.id)
      return clientHooks.requests.answer(request.params.request_id, request.body)
    },
  )
}

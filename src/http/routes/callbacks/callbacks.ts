/** Routes for callbacks (webhooks), which receive the events of a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import {
  Callback,
  CallbackPage,
  CreateCallback,
  CreatedCallback,
  UpdateCallback,
  UpdatedCallback,
} from '../../../contract/callback.ts'
import { ConversationId } from '../../../contract/conversation.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { KeyHeader, idempotencyOf } from '../../request/idempotency-key.ts'
import { ById, CONVERSATION } from '../../openapi/conversation-params.ts'

export const ByCallback = z.strictObject({ id: ConversationId, callback_id: z.uuid().toLowerCase() })

/** Errors of every route of one callback. */
export const CALLBACK = [...CONVERSATION, 'callback_not_found'] as const

/** Errors of creating a callback. */
const CREATE = [
  ...CALLBACK,
  'callback_address_refused',
  'idempotency_in_flight',
  'idempotency_mismatch',
  'storage_full',
] as const

export const callbackRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('callbacks')
  const callbacksOf = async (id: string) => (await manager.open(id)).webhooks

  app.post(
    '/conversations/:id/callbacks',
    {
      schema: {
        ...describe('createCallback', 'Create a callback that delivers new events to a URL, signed', CREATE),
        params: ById,
        headers: KeyHeader,
        body: CreateCallback,
        response: { 201: CreatedCallback },
      },
    },
    async (request, reply) => {
      const callbacks = await callbacksOf(request.params.id)
      const creation = await callbacks.create(request.body, idempotencyOf(request))
      const location = `/conversations/${request.params.id}/callbacks/${creation.id}`
      return reply.code(201).header('location', location).send(creation)
    },
  )

  app.get(
    '/conversations/:id/callbacks',
    {
      schema: {
        ...describe('listCallbacks', 'List the callbacks', CONVERSATION),
        params: ById,
        response: { 200: CallbackPage },
      },
    },
    async (request) => ({ items: (await callbacksOf(request.params.id)).list(), next_page_id: null }),
  )

  app.get(
    '/conversations/:id/callbacks/:callback_id',
    {
      schema: {
        ...describe('getCallback', 'Get a callback', CALLBACK),
        params: ByCallback,
        response: { 200: Callback },
      },
    },
    async (request) => (await callbacksOf(request.params.id)).get(request.params.callback_id),
  )

  app.put(
    '/conversations/:id/callbacks/:callback_id',
    {
      schema: {
        ...describe(
          'updateCallback',
          'Change, disable or enable a callback; an enabled one continues where it stopped',
          [...CALLBACK, 'callback_address_refused', 'storage_full'],
        ),
        params: ByCallback,
        body: UpdateCallback,
        response: { 200: UpdatedCallback },
      },
    },
    async (request) => (await callbacksOf(request.params.id)).update(request.params.callback_id, request.body),
  )

  app.delete(
    '/conversations/:id/callbacks/:callback_id',
    {
      schema: {
        ...describe('deleteCallback', 'Delete a callback', [...CALLBACK, 'storage_full']),
        params: ByCallback,
        response: { 204: z.undefined().describe('The callback is deleted, and no delivery is in progress.') },
      },
    },
    async (request, reply) => {
      await (await callbacksOf(request.params.id)).remove(request.params.callback_id)
      return reply.code(204).send()
    },
  )
}

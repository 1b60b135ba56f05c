/** Routes for callbacks: where the events of a conversation are delivered, and the outcome of the deliveries. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import {
  Callback,
  CallbackPage,
  CreateCallback,
  CreatedCallback,
  DeliveryPage,
  ListDeliveries,
  Redeliver,
  TestOutcome,
  UpdateCallback,
  UpdatedCallback,
} from '../../contract/callback.ts'
import { ConversationId } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { closeSignal } from '../close-signal.ts'
import { describeRoute } from '../describe-route.ts'
import { KeyHeader, idempotencyOf } from '../idempotency-key.ts'
import { ById, CONVERSATION } from './conversations.ts'

const ByCallback = z.strictObject({ id: ConversationId, callback_id: z.uuid().toLowerCase() })

const CALLBACK = [...CONVERSATION, 'callback_not_found'] as const

export const callbackRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('callbacks')
  const callbacksOf = async (id: string) => (await manager.open(id)).callbacks

  app.post(
    '/conversations/:id/callbacks',
    {
      schema: {
        ...describe('createCallback', 'Create a callback that delivers new events to a URL, signed', [
          ...CALLBACK,
          'callback_address_refused',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: CreateCallback,
        response: { 201: CreatedCallback },
      },
    },
    async (request, reply) => {
      const callbacks = await callbacksOf(request.params.id)
      const created = await callbacks.create(request.body, idempotencyOf(request))
      const location = `/conversations/${request.params.id}/callbacks/${created.id}`
      return reply.code(201).header('location', location).send(created)
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

  app.get(
    '/conversations/:id/callbacks/:callback_id/deliveries',
    {
      schema: {
        ...describe('listDeliveries', 'List the last deliveries, newest first', [...CALLBACK, 'invalid_cursor']),
        params: ByCallback,
        querystring: ListDeliveries,
        response: { 200: DeliveryPage },
      },
    },
    async (request) => (await callbacksOf(request.params.id)).deliveries(request.params.callback_id, request.query),
  )

  app.post(
    '/conversations/:id/callbacks/:callback_id/test',
    {
      schema: {
        ...describe('testCallback', 'Send a signed test delivery and return its outcome', CALLBACK),
        params: ByCallback,
        response: { 200: TestOutcome },
      },
    },
    async (request, reply) => {
      const callbacks = await callbacksOf(request.params.id)
      return await callbacks.test(request.params.callback_id, closeSignal(reply))
    },
  )

  app.post(
    '/conversations/:id/callbacks/:callback_id/redeliver',
    {
      schema: {
        ...describe('redeliver', 'Deliver again from a given event, in order', [
          ...CALLBACK,
          'cursor_ahead',
          'storage_full',
        ]),
        params: ByCallback,
        body: Redeliver,
        response: { 202: Callback },
      },
    },
    async (request, reply) => {
      const callbacks = await callbacksOf(request.params.id)
      return reply.code(202).send(await callbacks.redeliver(request.params.callback_id, request.body.from_seq))
    },
  )
}

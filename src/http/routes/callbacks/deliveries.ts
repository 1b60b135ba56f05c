/** Routes for the deliveries of a callback: list, test, redeliver. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import {
  Callback,
  CallbackStates,
  DeliveryPage,
  ListAllCallbacks,
  ListDeliveries,
  Redeliver,
  TestOutcome,
} from '../../../contract/callback.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { accessOf, visibleTo } from '../../guards/authorize.ts'
import { closeSignal } from '../../request/close-signal.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { ByCallback, CALLBACK } from './callbacks.ts'

export const deliveryRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('callbacks')
  const callbacksOf = async (id: string) => (await manager.open(id)).webhooks

  app.get(
    '/callbacks',
    {
      schema: {
        ...describe('listAllCallbacks', 'List the callbacks of all conversations, with what failed', [
          'invalid_cursor',
        ]),
        querystring: ListAllCallbacks,
        response: { 200: CallbackStates },
      },
    },
    (request) => manager.callbacks.page(request.query, visibleTo(accessOf(request))),
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

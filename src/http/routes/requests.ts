/** Routes for requests to the outside: list what waits for a user or a program, and answer it. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { REQUESTS } from '../../contract/requests/request-kinds.ts'
import {
  AnswerRequest,
  ListAllRequests,
  ListOpenRequests,
  OpenRequest,
  OpenRequests,
  RequestAccepted,
  ShowRequest,
  WaitingRequests,
} from '../../contract/request.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

const OneRequest = z.strictObject({ id: ConversationId, request_id: z.uuid().toLowerCase() })

export const requestRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('requests')

  app.get(
    '/requests',
    {
      schema: {
        ...describe('listAllRequests', 'List what waits in all conversations, the oldest first', ['invalid_cursor']),
        querystring: ListAllRequests,
        response: { 200: WaitingRequests },
      },
    },
    (request) => manager.requests(request.query, visibleTo(accessOf(request))),
  )

  app.get(
    '/conversations/:id/requests',
    {
      schema: {
        ...describe('listRequests', 'List what waits for a user or a program, the oldest first', CONVERSATION),
        params: ById,
        querystring: ListOpenRequests,
        response: { 200: OpenRequests },
      },
    },
    async (request) => ({ items: (await manager.open(request.params.id)).requests.list(request.query) }),
  )

  app.get(
    '/conversations/:id/requests/:request_id',
    {
      schema: {
        ...describe('getRequest', 'Get a request that waits', [...CONVERSATION, 'request_not_found']),
        params: OneRequest,
        querystring: ShowRequest,
        response: { 200: OpenRequest },
      },
    },
    async ({ params, query }) => (await manager.open(params.id)).requests.get(params.request_id, query.client),
  )

  app.post(
    '/conversations/:id/requests/:request_id',
    {
      schema: {
        ...describe('answerRequest', 'Answer a request; the first answer counts', [
          ...CONVERSATION,
          'conversation_from_newer_version',
          'storage_full',
          'request_not_found',
          'request_closed',
          'already_answered',
          'input_changed',
          'limit_reached',
        ]),
        params: OneRequest,
        body: AnswerRequest,
        response: { 200: RequestAccepted },
      },
    },
    async (request) => {
      const access = accessOf(request)
      access.require(REQUESTS[request.body.kind].scope)
      const { requests } = await manager.open(request.params.id)
      return await requests.answer(request.params.request_id, request.body, access.key?.name)
    },
  )
}

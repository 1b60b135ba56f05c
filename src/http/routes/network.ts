/** Routes for pending network requests: hosts that commands want to reach and a user must allow. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { DecideNetworkRequest, NetworkDecisionAnswer, PendingNetworkRequests } from '../../contract/network.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { describeRoute } from '../describe-route.ts'
import { ById, CONVERSATION } from './conversation-params.ts'

export const networkRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('permissions')

  app.get(
    '/conversations/:id/network-requests',
    {
      schema: {
        ...describe('listNetworkRequests', 'List the hosts that wait for a decision', CONVERSATION),
        params: ById,
        response: { 200: PendingNetworkRequests },
      },
    },
    async (request) => (await manager.open(request.params.id)).network.pending(),
  )

  app.post(
    '/conversations/:id/network-requests/:request_id',
    {
      schema: {
        ...describe('decideNetworkRequest', 'Allow or deny the connections that wait for a host', [
          ...CONVERSATION,
          'storage_full',
          'network_request_not_found',
          'already_decided',
        ]),
        params: z.strictObject({ id: ConversationId, request_id: z.uuid().toLowerCase() }),
        body: DecideNetworkRequest,
        response: { 200: NetworkDecisionAnswer },
      },
    },
    async (request) => {
      const { network } = await manager.open(request.params.id)
      return await network.decide(request.params.request_id, request.body)
    },
  )
}

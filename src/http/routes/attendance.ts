/** Routes by which a chat announces that a person has a conversation open. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

const ByClient = ById.extend({ client_id: z.uuid().describe('Chosen by the client, for itself.') })

export const attendanceRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.put(
    '/conversations/:id/attendance/:client_id',
    {
      schema: {
        ...describe('announceAttendance', 'Announce for 30 seconds that a person has it open', CONVERSATION),
        params: ByClient,
        response: { 204: z.undefined().describe('The conversation is `attended`.') },
      },
    },
    async ({ params }, reply) => {
      await requireKnown(manager, params.id)
      manager.attendance.announce(params.id, params.client_id)
      return reply.code(204).send()
    },
  )

  app.delete(
    '/conversations/:id/attendance/:client_id',
    {
      schema: {
        ...describe('endAttendance', 'Withdraw the announcement', CONVERSATION),
        params: ByClient,
        response: { 204: z.undefined().describe('This client does not have it open.') },
      },
    },
    async ({ params }, reply) => {
      await requireKnown(manager, params.id)
      manager.attendance.leave(params.id, params.client_id)
      return reply.code(204).send()
    },
  )
}

/** Opens only an unknown one, which fails: an announcement does not keep an idle conversation in memory. */
async function requireKnown(manager: ConversationManager, id: string): Promise<void> {
  if (!manager.ownerOf(id)) await manager.open(id)
}

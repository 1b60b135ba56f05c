/** Routes for the shell sessions of a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ShellSessions } from '../../contract/values/command.ts'
import { ConversationId } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const shellSessionRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('commands')

  app.get(
    '/conversations/:id/shell-sessions',
    {
      schema: {
        ...describe('listShellSessions', 'List shell sessions, including that of the agent', CONVERSATION),
        params: ById,
        response: { 200: ShellSessions },
      },
    },
    async (request) => {
      const { shells } = (await manager.open(request.params.id)).exec
      return { items: await shells.list(), next_page_id: null }
    },
  )

  app.delete(
    '/conversations/:id/shell-sessions/:session_id',
    {
      schema: {
        ...describe('endShellSession', 'End a shell session with its processes and discard its state', [
          ...CONVERSATION,
          'session_not_found',
          'session_busy',
        ]),
        params: z.strictObject({ id: ConversationId, session_id: z.string() }),
        response: {
          204: z.undefined().describe('The next command in this session starts a new shell in the workdir.'),
        },
      },
    },
    async (request, reply) => {
      const { shells } = (await manager.open(request.params.id)).exec
      await shells.end(request.params.session_id)
      return reply.code(204).send()
    },
  )
}

/** Routes for the processes of a conversation, including background processes. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { EndedProcesses, EndProcesses, Processes } from '../../contract/values/command.ts'
import { ConversationId } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

const ByPid = z.strictObject({ id: ConversationId, pid: z.coerce.number().int().positive() })

export const processRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('commands')

  app.get(
    '/conversations/:id/processes',
    {
      schema: {
        ...describe(
          'listProcesses',
          'List the processes of a conversation, including background processes of the agent',
          CONVERSATION,
        ),
        params: ById,
        response: { 200: Processes },
      },
    },
    async (request) => {
      const { processes } = (await manager.open(request.params.id)).exec
      return { items: await processes.list(), next_page_id: null }
    },
  )

  app.delete(
    '/conversations/:id/processes',
    {
      schema: {
        ...describe('endProcesses', 'End the processes that match a pattern, and their children', CONVERSATION),
        params: ById,
        querystring: EndProcesses,
        response: { 200: EndedProcesses },
      },
    },
    async (request) => {
      const { processes } = (await manager.open(request.params.id)).exec
      return await processes.endMatching(request.query.pattern)
    },
  )

  app.delete(
    '/conversations/:id/processes/:pid',
    {
      schema: {
        ...describe('endProcess', 'End a process of the conversation, and its children', [
          ...CONVERSATION,
          'process_not_found',
        ]),
        params: ByPid,
        response: { 200: EndedProcesses },
      },
    },
    async (request) => {
      const { processes } = (await manager.open(request.params.id)).exec
      return await processes.end(request.params.pid)
    },
  )
}

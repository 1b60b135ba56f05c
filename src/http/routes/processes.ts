/** Routes for what runs in a conversation: its shell sessions, and the processes that were left running. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { EndedProcesses, EndProcesses, Processes, ShellSessions } from '../../contract/command.ts'
import { ConversationId } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { describeRoute } from '../describe-route.ts'
import { ById, CONVERSATION } from './conversations.ts'

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
      const { processes } = await manager.open(request.params.id)
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
      const { processes } = await manager.open(request.params.id)
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
      const { processes } = await manager.open(request.params.id)
      return await processes.end(request.params.pid)
    },
  )

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
      const { shells } = await manager.open(request.params.id)
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
      const { shells } = await manager.open(request.params.id)
      await shells.end(request.params.session_id)
      return reply.code(204).send()
    },
  )
}

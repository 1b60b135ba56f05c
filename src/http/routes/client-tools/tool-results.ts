/** Routes for tools that clients execute: list the calls that wait, and send the result of one. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { PendingToolCalls, PostToolResult, ToolResultAccepted } from '../../../contract/client-tools/client-tool.ts'
import { ConversationId } from '../../../contract/conversation.ts'
import type { ConversationManager } from '../../../conversations/registry/manager.ts'
import { describeRoute } from '../../describe-route.ts'
import { ById, CONVERSATION } from '../conversation-params.ts'

const MAX_ID_CHARS = 1000

export const toolResultRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.get(
    '/conversations/:id/tool-calls',
    {
      schema: {
        ...describe('listToolCalls', 'List the calls of client tools that wait for a client', CONVERSATION),
        params: ById,
        response: { 200: PendingToolCalls },
      },
    },
    async (request) => (await manager.open(request.params.id)).clientCalls.pending(),
  )

  app.post(
    '/conversations/:id/tool-results/:tool_use_id',
    {
      schema: {
        ...describe('postToolResult', 'Send the result of a client tool; the first result counts', [
          ...CONVERSATION,
          'conversation_from_newer_version',
          'storage_full',
          'tool_call_not_found',
          'already_answered',
          'tool_call_ended',
        ]),
        params: z.strictObject({
          id: ConversationId,
          tool_use_id: z.string().min(1).max(MAX_ID_CHARS).describe('Of the `ClientToolCall`.'),
        }),
        body: PostToolResult,
        response: { 200: ToolResultAccepted },
      },
    },
    async (request) => {
      const { clientCalls } = await manager.open(request.params.id)
      return await clientCalls.answer(request.params.tool_use_id, request.body)
    },
  )
}

/** Routes for the MCP servers of a conversation: their status, and a new connection. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../../contract/conversation.ts'
import { McpServerList, McpServerView } from '../../../contract/mcp/mcp-status.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../../openapi/conversation-params.ts'

export const mcpRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.get(
    '/conversations/:id/mcp',
    {
      schema: {
        ...describe('listMcpServers', 'List the MCP servers with their status and tools', CONVERSATION),
        params: ById,
        response: { 200: McpServerList },
      },
    },
    async (request) => (await manager.open(request.params.id)).mcp.view(),
  )

  app.post(
    '/conversations/:id/mcp/:server_name/reconnect',
    {
      schema: {
        ...describe('reconnectMcpServer', 'Connect an MCP server again; waits for it up to 5 seconds', [
          ...CONVERSATION,
          'mcp_server_not_found',
        ]),
        params: z.strictObject({ id: ConversationId, server_name: z.string().min(1).max(100) }),
        response: { 200: McpServerView },
      },
    },
    async (request) => await (await manager.open(request.params.id)).mcp.reconnect(request.params.server_name),
  )
}

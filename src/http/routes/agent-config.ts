/** Routes that show and change the configuration of the agent of a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { AgentInfo } from '../../contract/agent-info.ts'
import { ConversationView, UpdateConfig } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf } from '../guards/authorize.ts'
import { mayConfigure } from '../guards/limited-requests.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const agentConfigRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('conversations')

  app.get(
    '/conversations/:id/agent-info',
    {
      schema: {
        ...describe('getAgentInfo', 'Get the configuration of the agent: model, tools, prompt, limits', CONVERSATION),
        params: ById,
        response: { 200: AgentInfo },
      },
    },
    async (request) => (await manager.open(request.params.id)).agentInfo(),
  )

  app.put(
    '/conversations/:id/config',
    {
      schema: {
        ...describe('updateConfig', 'Change the configuration; allowed during a run', [
          ...CONVERSATION,
          'conversation_running',
          'conversation_changed',
          'unsafe_path',
          'network_not_permitted',
          'network_mode_unavailable',
          'storage_full',
        ]),
        params: ById,
        body: UpdateConfig,
        response: { 200: ConversationView },
      },
    },
    async (request) => {
      mayConfigure(accessOf(request), request.body)
      return await (await manager.open(request.params.id)).configure(request.body)
    },
  )
}

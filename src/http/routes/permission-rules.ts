/** Routes that show and replace the permission rules of a conversation. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { PermissionRulesView } from '../../contract/values/permission.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const permissionRuleRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (
  app,
  { manager },
) => {
  const describe = describeRoute('permissions')

  app.get(
    '/conversations/:id/permission-rules',
    {
      schema: {
        ...describe('listPermissionRules', 'List the permission rules', CONVERSATION),
        params: ById,
        response: { 200: PermissionRulesView },
      },
    },
    async (request) => (await manager.open(request.params.id)).rules.current,
  )

  app.put(
    '/conversations/:id/permission-rules',
    {
      schema: {
        ...describe(
          'replacePermissionRules',
          'Replace the permission rules; calls that already wait still need a decision',
          [...CONVERSATION, 'storage_full'],
        ),
        params: ById,
        body: PermissionRulesView,
        response: { 200: PermissionRulesView },
      },
    },
    async (request) => {
      const { project: _, warnings: __, ...rules } = request.body
      return (await manager.open(request.params.id)).rules.replace(rules)
    },
  )
}

/** The route for what the answers of models took and cost. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { GetUsage, UsageReport } from '../../contract/usage.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { closeSignal } from '../request/close-signal.ts'

export const usageRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('server')

  app.get(
    '/usage',
    {
      schema: {
        ...describe(
          'getUsage',
          'Sum what answers of models took and cost, by time, model, user, label or conversation',
        ),
        querystring: GetUsage,
        response: { 200: UsageReport },
      },
    },
    async (request, reply) => {
      const access = accessOf(request)
      const { conversations, userId, profiles } = access.limits
      const only = { conversations: conversations && [...conversations], userId }
      const visible = { only, hasProfiles: profiles !== undefined, isVisible: visibleTo(access) }
      return await manager.usage.report(request.query, visible, closeSignal(reply))
    },
  )
}

/** The search over the events of all conversations. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { FoundEvents, SearchEvents } from '../../contract/search.ts'
import type { ConversationSearch } from '../../conversations/search/search.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'
import { closeSignal } from '../request/close-signal.ts'
import { describeRoute } from '../openapi/describe-route.ts'

export const searchRoutes: FastifyPluginAsyncZod<{ search: Pick<ConversationSearch, 'page'> }> = async (
  app,
  { search },
) => {
  const describe = describeRoute('events')

  app.get(
    '/search',
    {
      schema: {
        ...describe('searchEvents', 'Search the events of all conversations', ['invalid_cursor', 'search_off']),
        querystring: SearchEvents,
        response: { 200: FoundEvents },
      },
    },
    (request, reply) =>
      search.page(request.query, { isVisible: visibleTo(accessOf(request)), signal: closeSignal(reply) }),
  )
}

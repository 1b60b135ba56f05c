/** The route for what the server knows about models. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { ListModels, ModelPage } from '../../contract/models.ts'
import type { KnownModels } from '../../conversations/known-models.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf, visibleTo } from '../guards/authorize.ts'

export const modelRoutes: FastifyPluginAsyncZod<{ models: KnownModels }> = async (app, { models }) => {
  const describe = describeRoute('server')

  app.get(
    '/models',
    {
      schema: {
        ...describe('listModels', 'List models with their limits and prices'),
        querystring: ListModels,
        response: { 200: ModelPage },
      },
    },
    (request) => models.page(request.query, visibleTo(accessOf(request))),
  )
}

/** Routes about the server itself: whether it lives, whether it takes work, what it is. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { Alive, Info } from '../../contract/server.ts'
import { describeRoute } from '../describe-route.ts'

export const serverRoutes: FastifyPluginAsyncZod<{ info: Info; isReady: () => boolean }> = async (
  app,
  { info, isReady },
) => {
  const describe = describeRoute('server')
  const isPublic = { config: { public: true } }

  app.get(
    '/alive',
    { ...isPublic, schema: { ...describe('alive', 'Whether the server lives'), response: { 200: Alive } } },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/ready',
    {
      ...isPublic,
      schema: { ...describe('ready', 'Whether the server takes work'), response: { 200: Alive, 503: Alive } },
    },
    async (_, reply) =>
      isReady()
        ? reply.send({ status: 'ok' })
        : reply.code(503).header('retry-after', '1').send({ status: 'unavailable' }),
  )

  app.get(
    '/info',
    { schema: { ...describe('info', 'Version, tools, isolation and limits'), response: { 200: Info } } },
    async () => info,
  )
}

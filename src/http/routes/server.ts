/** Routes about the server itself: whether it lives, whether it takes work, what it is. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { Alive, Info, Readiness } from '../../contract/server.ts'
import type { Exposition } from '../../telemetry/exposition.ts'
import { createExposition } from '../../telemetry/exposition.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { describeRoute } from '../describe-route.ts'
import type { ReadinessProbe } from '../readiness.ts'

type ServerRouteDeps = { info: Info; readiness: ReadinessProbe; metrics: Metrics }

export const serverRoutes: FastifyPluginAsyncZod<ServerRouteDeps> = async (app, { info, readiness, metrics }) => {
  const describe = describeRoute('server')
  const isPublic = { config: { public: true } }
  const isEarly = { config: { early: true } }

  app.get(
    '/alive',
    { ...isPublic, schema: { ...describe('alive', 'Whether the server lives'), response: { 200: Alive } } },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/ready',
    {
      ...isPublic,
      schema: { ...describe('ready', 'Whether the server takes work'), response: { 200: Readiness, 503: Readiness } },
    },
    async (_, reply) => {
      const now = await readiness()
      return now.status === 'ok' ? reply.send(now) : reply.code(503).header('retry-after', '1').send(now)
    },
  )

  app.get(
    '/info',
    { ...isEarly, schema: { ...describe('info', 'Version, tools, isolation and limits'), response: { 200: Info } } },
    async () => info,
  )

  let exposition: Promise<Exposition> | undefined
  app.get(
    '/metrics',
    {
      ...isEarly,
      schema: {
        ...describe('metrics', 'What the server counts of itself, for Prometheus'),
        response: {
          200: {
            description: 'The text format of Prometheus, version 0.0.4.',
            content: { 'text/plain': { schema: z.string() } },
          },
        },
      },
    },
    async (_, reply) => {
      exposition ??= createExposition(metrics.instruments)
      const { contentType, text } = await exposition
      return reply
        .type(contentType)
        .serializer(String)
        .send(await text())
    },
  )
}

/** Routes for the server itself: liveness, readiness, information, and what it knows about models. */
import { accessOf, visibleTo } from '../guards/authorize.ts'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ListModels, ModelPage } from '../../contract/models.ts'
import { Alive, Info, Readiness, ServerActivity } from '../../contract/server.ts'
import type { KnownModels } from '../../conversations/known-models.ts'
import type { Exposition } from '../../telemetry/exposition.ts'
import { createExposition } from '../../telemetry/exposition.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import type { ReadinessProbe } from '../readiness.ts'

type ServerRouteDeps = { info: Info; readiness: ReadinessProbe; metrics: Metrics }

export const serverRoutes: FastifyPluginAsyncZod<ServerRouteDeps> = async (app, { info, readiness, metrics }) => {
  const describe = describeRoute('server')
  const isPublic = { config: { public: true } }
  const isEarly = { config: { early: true } }

  app.get(
    '/alive',
    { ...isPublic, schema: { ...describe('alive', 'Check whether the process answers'), response: { 200: Alive } } },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/ready',
    {
      ...isPublic,
      schema: {
        ...describe('ready', 'Check whether the server accepts requests'),
        response: { 200: Readiness, 503: Readiness },
      },
    },
    async (_, reply) => {
      const now = await readiness()
      return now.status === 'ok' ? reply.send(now) : reply.code(503).header('retry-after', '1').send(now)
    },
  )

  app.get(
    '/info',
    {
      ...isEarly,
      schema: { ...describe('info', 'Get version, tools, isolation and limits'), response: { 200: Info } },
    },
    async () => info,
  )

  app.get(
    '/activity',
    {
      schema: {
        ...describe('activity', 'Get the numbers of active and queued runs and of open streams'),
        response: { 200: ServerActivity },
      },
    },
    (request) => {
      const access = accessOf(request)
      // They are about the conversations of everybody.
      if (access.isLimited) access.require('admin')
      return metrics.activity
    },
  )

  let exposition: Exposition | undefined
  app.get(
    '/metrics',
    {
      ...isEarly,
      schema: {
        ...describe('metrics', 'Get metrics in the Prometheus format'),
        response: {
          200: {
            description: 'The Prometheus text format, version 0.0.4.',
            content: { 'text/plain': { schema: z.string() } },
          },
        },
      },
    },
    async (_, reply) => {
      exposition ??= createExposition(metrics.instruments)
      const { contentType, text } = exposition
      return reply.type(contentType).serializer(String).send(text())
    },
  )
}

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

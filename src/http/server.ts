/** The HTTP server: plugins, hooks and routes put together. What a route does is in `routes/`, what an error says in `problem-handler.ts`. */
import type { Socket } from 'node:net'
import { fastifySSE } from '@fastify/sse'
import type { FastifyBaseLogger, FastifyError, FastifyInstance, FastifySchemaCompiler } from 'fastify'
import Fastify, { LogController } from 'fastify'
import { validatorCompiler } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import type { Info } from '../contract/server.ts'
import { Problem } from '../contract/problem.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { HashBody } from '../security/body-hash.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Authenticate } from './auth.ts'
import { createRouteTable } from './route-table.ts'
import { handleError } from './problem-handler.ts'
import { callbackRoutes } from './routes/callbacks.ts'
import { conversationRoutes } from './routes/conversations.ts'
import { eventRoutes } from './routes/events.ts'
import { messageRoutes } from './routes/messages.ts'
import { permissionRoutes } from './routes/permissions.ts'
import { secretRoutes } from './routes/secrets.ts'
import { serverRoutes } from './routes/server.ts'
import { taskRoutes } from './routes/tasks.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers without a key. */
    public?: boolean
  }
}

export type HttpDeps = {
  readonly manager: ConversationManager
  readonly authenticate: Authenticate
  readonly hashBody: HashBody
  readonly info: Info
  readonly isReady: () => boolean
  readonly logger: Logger
}

/** Milliseconds a client may take to send one whole request. */
const REQUEST_TIMEOUT_MS = 60_000
/** Longer than the usual 60 s of proxies, so that it is they who end an idle connection. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000

export async function createHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  // By its widest type: a narrower one would run through the types of every plugin and route.
  const logger: FastifyBaseLogger = deps.logger
  const app = Fastify({
    loggerInstance: logger,
    // One line per request, of our own, is below.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'req_id' }),
    bodyLimit: deps.info.limits.max_body_bytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // The routes say themselves what still works while the server stops, in the form that all errors have.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    genReqId: () => uuid7(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => void handleError(error, request, reply),
  })
  // Bodies and queries are parsed by their zod schemas; answers were made by us and are written as they are.
  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler<FastifyError>(async (error, request, reply) => {
    const { id } = (request.params ?? {}) as { id?: string }
    return handleError(error, request, reply, id === undefined ? undefined : await deps.manager.redactFor(id))
  })

  app.decorate('hashBody', deps.hashBody)
  acceptJsonOnly(app)

  const routes = createRouteTable()
  app.addHook('onRoute', routes.add)
  app.addHook('onRequest', async (request) => {
    if (!request.routeOptions.config.public) deps.authenticate(request.headers.authorization)
  })
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions } = request
    const facts = {
      method,
      route: routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    }
    // Probes come every few seconds and say nothing.
    if (routeOptions.config.public) request.log.debug(facts, 'request')
    else request.log.info(facts, 'request')
  })
  app.setNotFoundHandler(async (request) => {
    const allowed = routes.methodsOf(request.url)
    if (!allowed.length) throw new Problem('not_found', 'There is no such route; /openapi.json lists them all.')
    throw new Problem('method_not_allowed', `This route answers ${allowed.join(', ')}.`, {
      details: { allow: allowed },
    })
  })

  await app.register(fastifySSE)
  await registerRoutes(app, deps)
  return app
}

/** What is no request at all never reaches a route; it is answered in the form that all errors have, and the connection ended. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const problem = new Problem(
    'invalid_request',
    'This is no HTTP request that the server can read; check its first line and the size of its headers.',
  )
  const body = JSON.stringify(problem.toBody())
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** Fastify shows a schema `null` for a body that is not there; to ours it is optional, not null. */
const compileValidator: FastifySchemaCompiler<z.ZodType> = (route) => {
  const validate = validatorCompiler(route)
  return route.httpPart === 'body' ? (data) => validate(data ?? undefined) : validate
}

/** Anything else is 415. An empty body is no body: clients send the header out of habit, also where nothing has to be said. */
function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.length === 0) done(null, undefined)
    else void parse(request, String(body), done)
  })
}

/** The routes alone: what the API's description is made from, too. */
export async function registerRoutes(
  app: FastifyInstance,
  deps: Pick<HttpDeps, 'manager' | 'info' | 'isReady'>,
): Promise<void> {
  const { manager, info, isReady } = deps
  await app.register(serverRoutes, { info, isReady })
  await app.register(conversationRoutes, { manager })
  await app.register(messageRoutes, { manager })
  await app.register(permissionRoutes, { manager })
  await app.register(secretRoutes, { manager })
  await app.register(taskRoutes, { manager })
  await app.register(callbackRoutes, { manager })
  await app.register(eventRoutes, { manager, streamBufferBytes: info.limits.stream_buffer_bytes })
}

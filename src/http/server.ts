/** The HTTP server: plugins, hooks and routes put together. What a route does is in `routes/`, what an error says in `problem-handler.ts`. */
import type { Server } from 'node:http'
import { fastifySSE } from '@fastify/sse'
import type {
  FastifyBaseLogger,
  FastifyError,
  FastifyInstance,
  FastifyRequest,
  FastifySchemaCompiler,
  FastifyHttpOptions,
} from 'fastify'
import Fastify, { LogController } from 'fastify'
import { validatorCompiler } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import { Problem } from '../contract/problem.ts'
import { refuseComplexJson } from '../lib/json/untrusted-json.ts'
import type { HashBody } from '../security/body-hash.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Authenticate } from './guards/auth.ts'
import { addAccess, createAuthorize } from './guards/authorize.ts'
import { createKeyCheck, requireKey } from './guards/require-key.ts'
import { MAX_HEADER_BYTES, answerClientError } from './guards/client-error.ts'
import { originRule, registerCors } from './guards/cors.ts'
import { endAllGracefully } from './guards/graceful-end.ts'
import type { RouteDeps } from './register-routes.ts'
import { registerRoutes } from './register-routes.ts'
import { waitForStart, wantsEventStream } from './streams/lasting-streams.ts'
import { createRouteTable } from './route-table.ts'
import { keepConversationsOpen } from './keep-conversation-open.ts'
import { handleError } from './problem-handler.ts'
import { refuseBadHead, watchExpectations } from './guards/request-head.ts'
import { logRequest, requestIdOf } from './request-log.ts'
import { SECURITY_HEADERS } from './guards/security-headers.ts'
import type { BodyTimes } from './guards/slow-bodies.ts'
import { BODY_TIMES, hasBody, watchBodies } from './guards/slow-bodies.ts'
import type { CheckKey } from './socket/first-frame-key.ts'
import { refuseBadUpgrade, shouldUpgrade, takeUpgrades } from './socket/upgrade.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers without a key. */
    public?: boolean
    /** Answers while the server starts, as all that is public does: it needs no conversations. */
    early?: boolean
    /** A stream, to which browsers may bring a ticket in the query. */
    takesTicket?: boolean
    /** For people to look at in a browser: it has separate security headers. */
    page?: boolean
    /** Its body is a file, or a form of files, of any type and size. */
    takesFiles?: boolean
  }
}

export type HttpDeps = Omit<RouteDeps, 'checkKey' | 'authorize'> & {
  readonly authenticate: Authenticate
  readonly hashBody: HashBody
  /** Whether it is not known yet which conversations there are. */
  readonly isStarting: () => boolean
  /** Rejects when the signal is aborted. */
  readonly untilStarted: (signal: AbortSignal) => Promise<void>
  /** Exact origins whose pages may call, or `*`. */
  readonly corsOrigins: readonly string[]
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  readonly trustProxy: readonly string[]
  readonly times?: RequestTimes
  readonly logger: Logger
}

/** How long a client may take to send a request and to read the answer, milliseconds. */
export type RequestTimes = BodyTimes & {
  readonly headersMs: number
  /** A client that takes nothing of its answer for so long is cut off. */
  readonly stallMs: number
  /** How often connections are looked at for that. */
  readonly checkMs: number
}

const REQUEST_TIMES: RequestTimes = { ...BODY_TIMES, headersMs: 20_000, stallMs: 60_000, checkMs: 5000 }
/** Longer than the usual 60 s of proxies, so that it is they who end an idle connection. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000

export async function createHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  const times = deps.times ?? REQUEST_TIMES
  const app = Fastify(optionsOf(deps, times))
  // Bodies and queries are parsed by their zod schemas; answers were made by us and are written as they are.
  app.setValidatorCompiler(compileValidator)
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler<FastifyError>(async (error, request, reply) => {
    const { id } = (request.params ?? {}) as { id?: string }
    return handleError(error, request, reply, id === undefined ? undefined : await deps.manager.redactFor(id))
  })

  app.decorate('hashBody', deps.hashBody)
  acceptJsonOnly(app)

  await app.register(fastifySSE)
  takeUpgrades(app, deps.info.limits.max_body_bytes)
  endAllGracefully(app)
  const bodies = watchBodies(app, times)
  const expectations = watchExpectations(app)

  const routes = createRouteTable()
  const refuseUnknown = (url: string): never => {
    const allow = routes.methodsOf(url)
    if (!allow.length) throw new Problem('not_found', 'This route does not exist. /openapi.json lists all routes.')
    throw new Problem('method_not_allowed', `This route answers ${allow.join(', ')}.`, { details: { allow } })
  }
  app.addHook('onRoute', routes.add)
  addAccess(app)
  app.decorateRequest('keyFingerprint', undefined)
  app.decorateRequest('isKeyRefused', false)
  checkHeadFirst(app)
  watchAnswers(app, times, deps.metrics)
  // Before the key is asked for: preflights have none.
  await registerCors(app, deps.corsOrigins)
  const checkKey = createKeyCheck(deps)
  const authorize = createAuthorize((id) => deps.manager.ownerOf(id))
  requireKey(app, checkKey)
  refuseBadUpgrades(app, deps.corsOrigins)
  // Requests that come here may be executed.
  app.addHook('onRequest', async (request, reply) => {
    // Before a body comes that nobody takes.
    if (request.is404) refuseUnknown(request.url)
    const { config } = request.routeOptions
    if (deps.isStarting() && !config.public && !config.early) {
      if (!wantsEventStream(request) || app.upgrades.has(request)) throw starting()
      await waitForStart(reply, deps.untilStarted)
      if (reply.sent) return
    }
    // A socket whose key comes in its first frame is looked at then.
    if (!config.public && request.access) authorize.request(request)
    expectations.meet(request, reply)
    if (takesLongBody(request)) bodies.allowSlow(request.raw)
  })
  keepConversationsOpen(app, deps.manager)
  app.setNotFoundHandler(async ({ url }) => refuseUnknown(url))

  const admit: CheckKey = async (request, authorization) => {
    await checkKey(request, authorization)
    authorize.request(request)
  }
  await registerRoutes(app, { ...deps, checkKey: admit, authorize })
  return app
}

function optionsOf(deps: HttpDeps, times: RequestTimes) {
  // By its widest type: a narrower one would run through the types of every plugin and route.
  const logger: FastifyBaseLogger = deps.logger
  return {
    loggerInstance: logger,
    // Our line per request is in `watchAnswers`.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'req_id' }),
    bodyLimit: deps.info.limits.max_body_bytes,
    http: {
      shouldUpgradeCallback: shouldUpgrade,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: times.headersMs,
      connectionsCheckingInterval: times.checkMs,
      // Said by `refuseBadHead`, in the form that all errors have.
      requireHostHeader: false,
    },
    // A file may take its time, so bodies are watched one by one.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // The routes say themselves what still works while the server stops, in the form that all errors have.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    genReqId: ({ headers }) => requestIdOf(headers),
    trustProxy: deps.trustProxy.length > 0 && [...deps.trustProxy],
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => void handleError(error, request, reply),
  } satisfies FastifyHttpOptions<Server>
}

function checkHeadFirst(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('x-request-id', request.id)
    if (!request.routeOptions.config.page) void reply.headers(SECURITY_HEADERS)
    refuseBadHead(request, reply)
  })
}

/** Ends connections of clients that do not read their answer; counts and logs each answer. */
function watchAnswers(app: FastifyInstance, { stallMs }: RequestTimes, metrics: Metrics): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    // The rest of the request is not waited for.
    if (hasBody(request.raw) && !request.raw.complete) void reply.header('connection', 'close')
    reply.raw.setTimeout(stallMs, () => reply.raw.destroy())
    done(null, payload)
  })
  app.addHook('onResponse', async (request, reply) => {
    metrics.answered(reply.statusCode)
    logRequest(request, reply)
  })
}

/** Those that have not ended by now, and the sockets, which HTTP does not count among its connections. */
export function cutConnections(app: FastifyInstance): void {
  app.server.closeAllConnections()
  app.upgrades.cut()
}

const starting = () =>
  new Problem('unavailable', 'The server is starting. Try again when /ready returns 200.', {
    details: { reason: 'starting' },
  })

const takesLongBody = ({ routeOptions: { config }, headers }: FastifyRequest): boolean =>
  !config.public && (config.takesFiles === true || !/^application\/json\b/i.test(headers['content-type'] ?? ''))

function refuseBadUpgrades(app: FastifyInstance, corsOrigins: readonly string[]): void {
  const isAllowedOrigin = originRule(corsOrigins)
  app.addHook('onRequest', async (request, reply) => {
    if (!app.upgrades.has(request)) return
    // For the answer, should it come to that: the connection is of no further use.
    void reply.header('connection', 'close')
    refuseBadUpgrade(request, isAllowedOrigin)
  })
}

/** Fastify shows a schema `null` for a body that is not there; to ours it is optional, not null. */
const compileValidator: FastifySchemaCompiler<z.ZodType> = (route) => {
  const validate = validatorCompiler(route)
  return route.httpPart === 'body' ? (data) => validate(data ?? undefined) : validate
}

/** Anything else is 415. An empty body counts as absent: clients send the header by default. */
function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = String(body)
    if (text.length === 0) return done(null, undefined)
    try {
      refuseComplexJson(text)
    } catch (error) {
      return done(
        new Problem('invalid_request', `The body ${error instanceof Error ? error.message : 'is too complex'}.`, {
          cause: error,
        }),
      )
    }
    void parse(request, text, done)
  })
}

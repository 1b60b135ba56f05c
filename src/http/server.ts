/**
 * The HTTP server: assembles plugins, hooks and routes. Routes are in `routes/`, error responses in
 * `problem-handler.ts`.
 */
import type { Server } from 'node:http'
import { fastifySSE } from '@fastify/sse'
import type {
  FastifyBaseLogger,
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyHttpOptions,
} from 'fastify'
import Fastify, { LogController } from 'fastify'
import { Problem } from '../contract/problem.ts'
import { withinTime } from '../lib/bounded-wait.ts'
import type { HashBody } from '../security/body-hash.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Authenticate } from './guards/auth.ts'
import { addAccess, createAuthorize } from './guards/authorize.ts'
import { MAX_KEYLESS, limitKeyless } from './guards/keyless-connections.ts'
import { createKeyCheck, createKeyRefusal, requireKey } from './guards/require-key.ts'
import { MAX_HEADER_BYTES, answerClientError, refuseTunnels } from './guards/client-error.ts'
import { originRule, registerCors } from './guards/cors.ts'
import type { Peers } from './guards/forward-to-owner.ts'
import { beginRequest, findOwner, forward, forwardByBody, learnConversation } from './guards/forward-to-owner.ts'
import { endAllGracefully } from './guards/graceful-end.ts'
import type { RouteDeps } from './register-routes.ts'
import { registerRoutes } from './register-routes.ts'
import { START_TIMEOUT_MS, waitToStream, wantsEventStream } from './request/lasting-streams.ts'
import { createRouteTable } from './route-table.ts'
import { SCHEMA_CONTROLLER, acceptJsonOnly } from './request/parse-input.ts'
import { handleError } from './request/problem-handler.ts'
import { runInOrder } from './guards/pipelined-requests.ts'
import { refuseBadHead, watchExpectations } from './guards/request-head.ts'
import { watchRequestLines } from './guards/request-line.ts'
import { UrlErrors } from './request/url-errors.ts'
import { logChange, logRead, requestIdOf } from './request/request-log.ts'
import { SECURITY_HEADERS } from './guards/security-headers.ts'
import { closeSignal } from './request/close-signal.ts'
import type { BodyTimes } from './guards/slow-bodies.ts'
import { BODY_TIMES, hasBody, watchBodies } from './guards/slow-bodies.ts'
import type { CheckKey } from './guards/first-frame-key.ts'
import { createFirstFrameKey } from './guards/first-frame-key.ts'
import { refuseBadUpgrade, shouldUpgrade, takeUpgrades } from './socket/upgrade.ts'
import type { RouteTable } from './route-table.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no key. */
    public?: boolean
    /** Works while the server starts, as all public routes do: it needs no conversations. */
    early?: boolean
    /** A stream or a download, for which browsers may send a ticket in the query. */
    takesTicket?: 'stream' | 'file'
    /** A page for browsers: it has separate security headers. */
    page?: boolean
    /** Its body is a file, or a form with files, of any type and size. */
    takesFiles?: boolean
  }
}

export type HttpDeps = Omit<RouteDeps, 'checkKey' | 'firstFrameKey' | 'refuseKey' | 'authorize'> & {
  readonly authenticate: Authenticate
  readonly hashBody: HashBody
  /** Returns true until the existing conversations are known. */
  readonly isStarting: () => boolean
  /** Rejects when the signal is aborted. */
  readonly untilStarted: (signal: AbortSignal) => Promise<void>
  /** Exact origins whose pages may call the API, or `*`. */
  readonly corsOrigins: readonly string[]
  /** Addresses and networks whose `X-Forwarded-For` is trusted. */
  readonly trustProxy: readonly string[]
  readonly times?: RequestTimes
  /** How long a request waits while the server starts, in milliseconds. */
  readonly startWaitMs?: number
  /** Connections without a valid key at a time. */
  readonly maxKeyless?: number
  /** Undefined: no other instance has conversations. */
  readonly peers?: Peers | undefined
  readonly logger: Logger
}

/** How long a client may take to send a request and to read the response, in milliseconds. */
export type RequestTimes = BodyTimes & {
  readonly headersMs: number
  /** A client that reads nothing of its response for this long is disconnected. */
  readonly stallMs: number
  /** Interval of that check. */
  readonly checkMs: number
}

const REQUEST_TIMES: RequestTimes = { ...BODY_TIMES, headersMs: 20_000, stallMs: 60_000, checkMs: 5000 }
/** Longer than the usual 60 s of proxies, so that the proxy ends an idle connection first. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000

export async function createHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  const { peers, times = REQUEST_TIMES } = deps
  const urlErrors = new UrlErrors(handleError)
  const app = Fastify(optionsOf(deps, times, urlErrors))
  app.decorate('urlErrors', urlErrors)
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
  app.addHook('onRoute', routes.add)
  runInOrder(app)
  addAccess(app)
  for (const name of ['keyFingerprint', 'remote', 'conversationId', 'elsewhere'] as const)
    app.decorateRequest(name, undefined)
  app.decorateRequest('isKeyRefused', false)
  app.decorateRequest('isForwarded', false)
  watchAnswers(app, times, deps.metrics)
  checkHeadFirst(app)
  // Register before the key check: preflights have no key.
  await registerCors(app, deps.corsOrigins)
  const refuseKey = createKeyRefusal(deps.metrics)
  const checkKey = limitKeyless(app, deps.maxKeyless ?? MAX_KEYLESS, createKeyCheck({ ...deps, refuseKey }))
  const authorize = createAuthorize(deps.manager)
  requireKey(app, checkKey)
  refuseBadUpgrades(app, deps.corsOrigins)
  // Requests that reach this hook will be executed.
  app.addHook('onRequest', async (request, reply) => {
    // Refuse before a body arrives that no handler reads.
    if (request.is404) refuseUnknown(request, reply, routes)
    const { config } = request.routeOptions
    if (deps.isStarting() && !config.public && !config.early) {
      if (wantsEventStream(request)) await waitToStream(reply, deps.untilStarted)
      else await waitForStart(reply, deps)
      if (reply.sent) return
    }
    if (peers) beginRequest(request, reply, deps.manager)
    const owner = peers && (await findOwner(request, peers))
    if (peers && !owner) await learnConversation(request, deps.manager)
    // The owner authorizes what it answers. A WebSocket whose key is in its first frame is checked then.
    if (!owner && !request.remote && !config.public && request.access) authorize.request(request)
    expectations.meet(request, reply)
    if (takesLongBody(request)) bodies.allowSlow(request.raw)
    if (owner) await forward(request, reply, peers, owner)
  })
  if (peers) forwardByBody(app, peers)
  keepConversationsOpen(app, deps.manager)
  app.setNotFoundHandler(async (request, reply) => refuseUnknown(request, reply, routes))

  const admit: CheckKey = async (request, authorization) => {
    await checkKey(request, authorization)
    if (peers) await findOwner(request, peers)
    if (peers && !request.remote) await learnConversation(request, deps.manager)
    if (!request.remote) authorize.request(request)
  }
  const firstFrameKey = createFirstFrameKey(admit)
  app.decorate('firstFrameKey', firstFrameKey)
  await registerRoutes(app, { ...deps, checkKey: admit, firstFrameKey, refuseKey, authorize })
  return app
}

function optionsOf(deps: HttpDeps, times: RequestTimes, urlErrors: UrlErrors) {
  // Use its widest type: a narrower one would propagate through the types of every plugin and route.
  const logger: FastifyBaseLogger = deps.logger
  return {
    loggerInstance: logger,
    // `watchAnswers` logs one line per request.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'req_id' }),
    bodyLimit: deps.info.limits.max_body_bytes,
    http: {
      shouldUpgradeCallback: shouldUpgrade,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: times.headersMs,
      connectionsCheckingInterval: times.checkMs,
      // `refuseBadHead` reports this in the common error format.
      requireHostHeader: false,
    },
    // A file upload may be slow, so bodies are timed individually.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // While the server stops, the routes decide what still works, with errors in the common format.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    genReqId: requestIdOf,
    trustProxy: deps.trustProxy.length > 0 && [...deps.trustProxy],
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => urlErrors.send(error, request, reply),
    schemaController: SCHEMA_CONTROLLER,
  } satisfies FastifyHttpOptions<Server>
}

function checkHeadFirst(app: FastifyInstance): void {
  const isBadLine = watchRequestLines(app)
  refuseTunnels(app)
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('x-request-id', request.id)
    if (!request.routeOptions.config.page) void reply.headers(SECURITY_HEADERS)
    refuseBadHead(request, reply, isBadLine(request.raw))
  })
}

/** Disconnects clients that do not read their response; counts and logs each response. */
function watchAnswers(app: FastifyInstance, { stallMs }: RequestTimes, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, callback) => {
    // This also logs a client that leaves before the response.
    reply.raw.once('close', () => logRead(request, reply))
    callback()
  })
  app.addHook('onSend', (request, reply, payload, callback) => {
    logChange(request, reply)
    // Do not wait for the rest of the request.
    if (hasBody(request.raw) && !request.raw.complete) void reply.header('connection', 'close')
    reply.raw.setTimeout(stallMs, () => reply.raw.destroy())
    callback(null, payload)
  })
  app.addHook('onResponse', async (_, reply) => metrics.answered(reply.statusCode))
}

/** Cuts the remaining connections, including WebSockets, which HTTP does not count among its connections. */
export function cutConnections(app: FastifyInstance): void {
  app.server.closeAllConnections()
  app.upgrades.cut()
}

/** Most starts take less than a second, the first one after a restore takes longer, and not every client tries again. */
async function waitForStart(reply: FastifyReply, deps: HttpDeps): Promise<void> {
  const { untilStarted, startWaitMs = START_TIMEOUT_MS } = deps
  await withinTime(startWaitMs, closeSignal(reply), untilStarted).catch(() => {
    throw starting()
  })
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
    // If the upgrade is refused, close the connection after the response: it is of no further use.
    void reply.header('connection', 'close')
    refuseBadUpgrade(request, isAllowedOrigin)
  })
}

/** A conversation stays open while a request for it is in progress, if its key was checked. A WebSocket holds its own. */
function keepConversationsOpen(app: FastifyInstance, manager: Pick<RouteDeps['manager'], 'hold'>): void {
  app.addHook('onRequest', async (request, reply) => {
    const { id } = (request.params ?? {}) as { id?: string }
    // The response never finishes after an upgrade.
    if (id === undefined || request.is404 || app.upgrades.has(request) || reply.raw.closed) return
    // The end of the response or of the connection, whichever is first.
    reply.raw.once('close', manager.hold(id.toLowerCase()))
  })
}

/** What the paths of many other APIs begin with. */
const PREFIX = /^(?:\/api)?(?:\/v\d{1,2})?(?=\/)/

/** Throws `method_not_allowed` for a path that has other methods, and `not_found` otherwise. */
function refuseUnknown({ url }: FastifyRequest, reply: FastifyReply, routes: RouteTable): never {
  const allow = routes.methodsOf(url)
  if (allow.length > 0) {
    const answeredMethods = allow.join(', ')
    void reply.header('allow', answeredMethods)
    throw new Problem('method_not_allowed', `This route answers ${answeredMethods}.`, { details: { allow } })
  }
  const prefix = PREFIX.exec(url)?.[0] ?? ''
  if (prefix !== '' && routes.methodsOf(url.slice(prefix.length)).length > 0)
    throw new Problem(
      'not_found',
      `This route does not exist. Leave out ${prefix}: the paths of this API have no prefix.`,
    )
  throw new Problem('not_found', 'This route does not exist. /openapi.json lists all routes.')
}

/**
 * The composition root: builds every long-lived object in the order of their dependencies, and closes them in reverse.
 */
import { join } from 'node:path'
import { ApiKeys } from './access/api-keys.ts'
import { makeCredential } from './access/credential.ts'
import type { LocalRecord } from './access/local-record.ts'
import { StreamTickets } from './access/stream-tickets.ts'
import type { Config } from './config/config.ts'
import { wantsColor } from './config/config.ts'
import { createCallbackDispatcher } from './conversations/webhooks/dispatcher.ts'
import { hasLockedSecrets } from './conversations/registry/locked-secrets.ts'
import type { ConversationManager } from './conversations/registry/manager.ts'
import type { Firehose } from './events/firehose/firehose.ts'
import type { CallbacksOf } from './hooks/select-hooks.ts'
import { createAuthenticator } from './http/guards/auth.ts'
import { pageRoutes } from './http/docs.ts'
import { createReadiness } from './http/readiness.ts'
import { listenOn } from './http/listen.ts'
import { createHttpServer, cutConnections } from './http/server.ts'
import { createFirehoseSlots, createStreamSlots } from './http/streams/stream-slots.ts'
import { orAborted } from './lib/bounded-wait.ts'
import { Queue } from './lib/queue.ts'
import { createResourceLimiter } from './limits/resource-limits.ts'
import { createBodyHash } from './security/body-hash.ts'
import { PendingAuthorizations } from './mcp/oauth/pending-authorizations.ts'
import { createSharedAutomata } from './security/redaction/shared-automata.ts'
import { createGuardedFetch } from './security/guarded-fetch.ts'
import { createSafeFetch } from './security/safe-fetch.ts'
import { openFileStorage } from './storage/files/file-storage.ts'
import type { Logger } from './telemetry/logger.ts'
import { createLogger } from './telemetry/logger.ts'
import { Metrics } from './telemetry/metrics.ts'
import { loadPrettyLines } from './telemetry/pretty-lines.ts'
import type { ManagerParts } from './wiring/create-manager.ts'
import { createManager } from './wiring/create-manager.ts'
import type { FoundSandbox } from './wiring/sandbox.ts'
import { findSandbox } from './wiring/sandbox.ts'
import { openLocalAccess } from './http/local/local-access.ts'
import { countByStatus, infoOf } from './wiring/server-info.ts'
import { createServerRedactor, warnOfGuessableKeys } from './wiring/server-redactor.ts'
import { USER_AGENT } from './wiring/version.ts'

export type App = {
  /** Where it listens, for example `http://127.0.0.1:8000`; the local address if it listens for this user only. */
  readonly url: string
  /** For programs of the same user. */
  readonly local: LocalRecord
  readonly logger: Logger
  /** Why commands run without a sandbox, as a clause; undefined if they run in one. */
  readonly missingSandbox: string | undefined
  /**
   * Resolves when the existing conversations are known; until then only requests that need none are answered. Rejects
   * if they cannot be read.
   */
  readonly ready: Promise<void>
  /**
   * Stops accepting requests, ends streams and runs, flushes, and releases the data directory. Idempotent. Returns true
   * if everything has ended; otherwise conversations were interrupted, or processes are still running.
   */
  readonly close: () => Promise<boolean>
}

/** How long a shutdown waits for connections to end by themselves, in milliseconds. */
const DRAIN_TIMEOUT_MS = 1000

const SECRETS_WITHOUT_KEY =
  'some stored secrets were encrypted with another master key and cannot be decrypted; they are kept: start with OPENHANDS_MASTER_KEY=new,old once, or set OPENHANDS_SECRET_KEY to the value it had then'

export type StartOptions = {
  /** Listen for programs of the same user only. */
  readonly isLocal?: boolean
  /** Hooks that are functions of the program that this server is part of. */
  readonly callbackHooksOf?: CallbacksOf | undefined
}

/**
 * Resolves when the server listens, and continues to start in the background: see `ready`. Closes everything that was
 * started if a later step fails.
 */
export async function startApp(given: Config, options: StartOptions = {}): Promise<App> {
  const credential = makeCredential('asl_')
  // It is accepted, and redacted in texts, as the master keys are. It encrypts nothing.
  const config: Config = { ...given, masterKeys: [...given.masterKeys, credential] }
  const started = new AsyncDisposableStack()
  // It takes as long as the next steps together, in a separate process.
  const sandbox = findSandbox(config)
  sandbox.catch(() => {}) // reported where it is awaited
  // The last step: shells may still run before. A program can start and close many servers.
  started.defer(async () => (await sandbox.catch(() => undefined))?.close?.())
  try {
    const { callbackHooksOf } = options
    const services = { ...(await startServices(config, started, sandbox)), callbackHooksOf }
    return await startServer(config, started, services, { ...options, credential })
  } catch (error) {
    await started.disposeAsync()
    throw error
  }
}

/** The dependencies of conversations and of the HTTP server. */
type Services = ManagerParts & {
  readonly apiKeys: ApiKeys
  readonly missingSandbox: string | undefined
  /** The port that it listens on, as soon as it does: a free one may be asked for. */
  readonly served: { port: string | undefined }
}

async function startServices(
  config: Config,
  started: AsyncDisposableStack,
  sandbox: Promise<FoundSandbox>,
): Promise<Services> {
  const automataOf = createSharedAutomata()
  const logger = createLogger({
    level: config.logLevel,
    redact: createServerRedactor(config, automataOf).redact,
    render: config.logFormat === 'pretty' ? await loadPrettyLines({ color: wantsColor() }) : undefined,
  })
  const storage = await openFileStorage({
    directory: config.dataDir,
    operatorKeys: config.secretKeys,
    onFault: (error) => logger.warn({ err: error }, 'the next start has to read more: summaries could not be written'),
  })
  started.use(storage)
  const limiting = createResourceLimiter({
    limits: config.limits,
    dataDir: config.dataDir,
    onError: (error) => logger.error({ err: error }, 'the use of resources cannot be watched'),
  })
  limiting.catch(() => {}) // reported where it is awaited
  warnOfGuessableKeys(config, logger)
  const apiKeys = started.use(await ApiKeys.open(join(config.dataDir, 'keys.json')))
  const { launcher, missing: missingSandbox } = await sandbox
  const resources = await limiting
  const callbackFetch = createSafeFetch({ allow: config.callbackAllow })
  const dispatcher = createCallbackDispatcher({ fetch: callbackFetch, userAgent: USER_AGENT })
  started.defer(() => dispatcher.close())
  const web = createSafeFetch({ allow: [] })
  started.defer(() => web.close())
  const mcp = createGuardedFetch({ allow: config.mcpAllow })
  started.defer(() => mcp.close())
  const metrics = new Metrics()
  const served: Services['served'] = { port: undefined }
  const slots = new Queue({ limit: config.maxConcurrentRuns })
  const shared = {
    storage,
    logger,
    automataOf,
    launcher,
    resources,
    metrics,
    slots,
    dispatcher,
    callbackFetch,
    web,
    mcpFetch: mcp.fetch,
    pendingAuthorizations: new PendingAuthorizations(),
    publicUrl: () => config.publicUrl ?? `http://127.0.0.1:${served.port ?? config.port}`,
  }
  return { ...shared, apiKeys, missingSandbox, served }
}

/** The server's progress. Conversations are available when it `isLoaded`. */
type Progress = {
  phase: 'starting' | 'running' | 'stopping'
  isLoaded: boolean
  readonly loading: PromiseWithResolvers<void>
}

async function startServer(
  config: Config,
  started: AsyncDisposableStack,
  services: Services,
  { isLocal = false, credential }: StartOptions & { readonly credential: string },
): Promise<App> {
  const { logger, missingSandbox } = services
  const { manager, firehose } = await createManager(config, services)
  const progress: Progress = { phase: 'starting', isLoaded: false, loading: Promise.withResolvers() }
  watchMetrics(services, manager, progress)
  const http = await createHttp(config, services, { manager, firehose, progress })
  // Close it after the conversations: it also receives their last events.
  started.defer(() => firehose.close())
  let isComplete = true
  started.defer(async () => {
    isComplete = await manager.close()
  })
  const listening = isLocal ? undefined : await listenOn(http, config)
  if (listening) services.served.port = new URL(listening.url).port
  if (listening?.warning !== undefined) logger.warn(listening.warning)
  const { dataDir } = config
  const local = await openLocalAccess(http, started, { dataDir, credential, url: listening?.url, logger })
  const ready = loadConversations(manager, progress, logger)
  if (services.storage.keys.locked > 0) void warnOfLockedSecrets(services)
  ready.catch(() => {}) // reported to the caller that waits for it

  const close = async () => {
    progress.phase = 'stopping'
    // It stops listening immediately and resolves when every connection is closed; the streams end when the manager
    // closes.
    const drained = Promise.all([listening?.close(), local.close()])
    await started.disposeAsync()
    const timer = setTimeout(() => cutConnections(http), DRAIN_TIMEOUT_MS)
    await drained
    clearTimeout(timer)
    return isComplete
  }
  let closing: Promise<boolean> | undefined
  const { address } = local
  return {
    url: listening?.url ?? address,
    local: { address, credential, ...(listening && { url: listening.url }) },
    logger,
    missingSandbox,
    ready,
    close: () => (closing ??= close()),
  }
}

function watchMetrics(
  { metrics, slots, dispatcher }: Services,
  manager: ConversationManager,
  progress: Progress,
): void {
  metrics.watch({
    conversationsByStatus: () => (progress.isLoaded ? countByStatus(manager) : {}),
    activeRuns: () => slots.active,
    queuedRuns: () => slots.waiting,
    callbackAttempts: () => dispatcher.stats().attempts,
    callbacksUnderWay: () => dispatcher.stats().underWay,
    callbackWaitMs: () => dispatcher.stats().oldestWaitingMs,
  })
}

type Served = { readonly manager: ConversationManager; readonly firehose: Firehose; readonly progress: Progress }

async function createHttp(config: Config, services: Services, { manager, firehose, progress }: Served) {
  const { storage, launcher, resources, apiKeys, metrics, logger } = services
  const http = await createHttpServer({
    manager,
    firehose,
    authenticate: createAuthenticator(config.masterKeys, apiKeys),
    apiKeys,
    tickets: new StreamTickets(),
    pendingAuthorizations: services.pendingAuthorizations,
    hashBody: createBodyHash(storage.keys.material),
    info: infoOf(config, launcher, resources),
    readiness: createReadiness({ dataDir: config.dataDir, phase: () => progress.phase }),
    isStarting: () => !progress.isLoaded,
    untilStarted: (signal) => orAborted(progress.loading.promise, signal),
    metrics,
    streamSlots: createStreamSlots(config.maxStreamsPerConversation),
    firehoseSlots: createFirehoseSlots(config.maxFirehoseStreams),
    corsOrigins: config.corsOrigins,
    trustProxy: config.trustProxy,
    logger,
  })
  await http.register(pageRoutes)
  return http
}

/** A key that encrypted nothing is not missed. Runs while the first requests are served: there may be many conversations. */
async function warnOfLockedSecrets({ storage, logger }: Services): Promise<void> {
  try {
    if (await hasLockedSecrets(storage)) logger.warn(SECRETS_WITHOUT_KEY)
  } catch (error) {
    logger.error({ err: error }, 'it could not be checked whether stored secrets can be decrypted')
  }
}

async function loadConversations(manager: ConversationManager, progress: Progress, logger: Logger): Promise<void> {
  await manager.start()
  progress.isLoaded = true
  progress.loading.resolve()
  if (progress.phase === 'starting') progress.phase = 'running'
  // Runs while the first requests are served: many conversations may have due deliveries.
  manager.resumeDeliveries().catch((error: unknown) => logger.error({ err: error }, 'deliveries could not be resumed'))
}

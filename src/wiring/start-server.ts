/** Builds the server on its services, in the order of the dependencies, and closes everything in reverse. */
import type { Server } from 'node:http'
import { join } from 'node:path'
import type { LocalRecord } from '../access/local-record.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Config } from '../config/config.ts'
import { KnownModels } from '../conversations/known-models.ts'
import { warnOfLockedSecrets } from '../conversations/registry/locked-secrets.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import type { Firehose } from '../events/firehose.ts'
import { pageRoutes } from '../http/docs.ts'
import { dashboardRoutes } from '../http/ui.ts'
import { createAuthenticator } from '../http/guards/auth.ts'
import type { Listening } from '../http/listen.ts'
import { InnerConnections } from '../http/local/inner-connections.ts'
import { LocalConnections } from '../http/local/local-connections.ts'
import { openLocalAccess } from '../http/local/local-access.ts'
import type { RemoteConversations } from '../http/remote/remote-conversations.ts'
import { createReadiness } from '../http/readiness.ts'
import { keylessLimit } from '../http/guards/keyless-connections.ts'
import type { RouteDeps } from '../http/register-routes.ts'
import { createHttpServer, cutConnections } from '../http/server.ts'
import { createFirehoseSlots, createStreamSlots } from '../http/streams/stream-slots.ts'
import { afterRunning, untilAborted, orAborted, timerMs } from '../lib/bounded-wait.ts'
import { loadProtocol } from '../protocols/protocol-routes.ts'
import { ReplayFiles } from '../replays/replay-files.ts'
import { Replays } from '../replays/replays.ts'
import { ownOpenFiles, warningsOfOwnLimits } from '../limits/own-limits.ts'
import type { Logger } from '../telemetry/logger.ts'
import { VERSION } from './version.ts'
import { listenInCluster, openCluster, openRemote } from './join-cluster.ts'
import { createManager } from './create-manager.ts'
import { countByStatus, infoOf } from './server-info.ts'
import type { Services } from './services.ts'
import { openTickets } from './stream-tickets.ts'

export type App = {
  /**
   * The URL at which it listens, for example `http://127.0.0.1:8000`; the local address if it listens for this user
   * only.
   */
  readonly url: string
  /** The record for programs of the same user. */
  readonly local: LocalRecord
  readonly logger: Logger
  /** Why commands run without a sandbox, as a clause; undefined if they run in one. */
  readonly missingSandbox: string | undefined
  /**
   * Resolves when the existing conversations are known; until then only requests that need none are answered. Rejects
   * if they cannot be read.
   */
  readonly ready: Promise<void>
  /** Rejects when another server has taken over the storage, with an error that says why. Then this one closes itself. */
  readonly takenOver: Promise<never>
  /**
   * Hands the conversations over to the other instances of the database, if there are any: those that work after the current
   * step. `close` must follow. Never rejects.
   */
  readonly drain: () => Promise<void>
  /**
   * Stops accepting requests, ends streams and runs, flushes, and releases the data directory. Idempotent. Returns true
   * if everything has ended; otherwise conversations were interrupted, or processes are still running.
   */
  readonly close: () => Promise<boolean>
}

/** How long a shutdown waits for connections to end by themselves, in milliseconds. */
const DRAIN_TIMEOUT_MS = 1000

const NOT_LEFT = 'it could not be stored that this instance stops'

/** The server's progress. Conversations are available when it `isLoaded`. */
type Progress = {
  phase: 'starting' | 'running' | 'stopping'
  isLoaded: boolean
  readonly loading: PromiseWithResolvers<void>
}

export async function startServer(
  config: Config,
  startedParts: AsyncDisposableStack,
  services: Services,
  listen: () => Promise<Listening | undefined>,
): Promise<App> {
  const { logger, missingSandbox, localCredential: credential } = services
  for (const warning of warningsOfOwnLimits()) logger.warn(warning)
  const { manager, firehose, search } = await createManager(config, services)
  const replays = await createReplays(config, services, manager)
  const progress: Progress = { phase: 'starting', isLoaded: false, loading: Promise.withResolvers() }
  watchMetrics(services, manager, progress)
  const connections = new LocalConnections()
  const cluster = await openCluster(config, services, manager)
  const remote = await openRemote(cluster, services, manager)
  const http = await createHttp(config, services, {
    manager,
    replays,
    search,
    firehose,
    progress,
    connections,
    cluster,
    remote,
  })
  // Close it after the conversations: it also receives their last events.
  startedParts.defer(() => firehose.close())
  let isComplete = true
  startedParts.defer(async () => {
    isComplete = await manager.close()
  })
  startedParts.defer(() => replays.close())
  startedParts.use(search)
  const listening = await listen()
  const { dataDir } = config
  const access = { dataDir, credential, connections, url: listening?.url, logger }
  const local = await openLocalAccess(http, startedParts, access)
  if (cluster) startedParts.use(cluster)
  if (remote) startedParts.use(remote)
  if (cluster) await listenInCluster(cluster, http.server, config, logger)
  if (listening) serveOn(listening, http.server, services)
  const ready = loadConversations(manager, replays, progress, logger)
  if (services.storage.keys.locked > 0) void warnOfLockedSecrets(services)
  ready.catch(() => {}) // reported to the caller that waits for it

  const drain = async () => {
    if (!cluster) return
    progress.phase = 'stopping'
    const deadline = AbortSignal.timeout(timerMs(config.drainSeconds * 1000))
    await replays.close() // whatever others do with their forks, the next start continues them
    // If this fails, the others learn that this one has ended.
    await cluster.leave().catch((error: unknown) => logger.warn({ err: error }, NOT_LEFT))
    await manager.leave(deadline)
  }
  const close = async () => {
    progress.phase = 'stopping'
    // It stops listening immediately and resolves when every connection is closed; the streams end when the manager
    // closes.
    const draining = Promise.all([listening?.close(), local.close()])
    await startedParts.disposeAsync()
    const cancel = afterRunning(DRAIN_TIMEOUT_MS, () => cutConnections(http))
    await draining
    cancel()
    return isComplete
  }
  let closing: Promise<boolean> | undefined
  const closeOnce = () => (closing ??= close())
  const takenOver = untilTakenOver(services, closeOnce)
  const { address } = local
  return {
    url: listening?.url ?? address,
    local: { address, credential, ...(listening && { url: listening.url }) },
    logger,
    missingSandbox,
    ready,
    takenOver,
    drain,
    close: closeOnce,
  }
}

async function createReplays(
  { dataDir }: Config,
  { storage, logger }: Services,
  manager: ConversationManager,
): Promise<Replays> {
  const sealerOf = (id: string) => storage.conversation(id).sealer
  const onDamaged = (error: unknown, path?: string) =>
    logger.error({ err: error, path }, 'a stored replay cannot be read')
  const files = new ReplayFiles({ directory: join(dataDir, 'replays'), sealerOf, onDamaged })
  const { replays: table } = storage
  if (!table) return new Replays({ manager, records: files, logger })
  const { SharedReplayRecords } = await import('../replays/replay-rows.ts')
  const records = new SharedReplayRecords({ table, files, sealerOf, onDamaged })
  return new Replays({ manager, records, logger })
}

function serveOn(listening: Listening, server: Server, { served, logger }: Services): void {
  served.port = new URL(listening.url).port
  listening.serve(server)
  for (const note of listening.notes) logger.info(note)
  if (listening.warning !== undefined) logger.warn(listening.warning)
}

function watchMetrics(
  { metrics, slots, dispatcher }: Services,
  manager: ConversationManager,
  progress: Progress,
): void {
  metrics.watch({
    conversationsByStatus: () => (progress.isLoaded && manager.pages.areComplete ? countByStatus(manager) : {}),
    openConversations: () => manager.openCount,
    activeRuns: () => slots.active,
    queuedRuns: () => slots.waiting,
    callbackAttempts: () => dispatcher.stats().attempts,
    activeCallbacks: () => dispatcher.stats().active,
    callbackWaitMs: () => dispatcher.stats().oldestWaitingMs,
  })
}

type ServedApp = {
  readonly manager: ConversationManager
  readonly replays: Replays
  readonly firehose: Firehose
  readonly search: RouteDeps['search']
  readonly progress: Progress
  readonly connections: LocalConnections
  readonly cluster: Cluster | undefined
  readonly remote: RemoteConversations | undefined
}

async function createHttp(
  config: Config,
  services: Services,
  { manager, replays, search, firehose, progress, connections, cluster, remote }: ServedApp,
) {
  const {
    storage,
    launcher,
    resources,
    apiKeys,
    logins,
    hashBody,
    metrics,
    logger,
    localCredential: credential,
  } = services
  const innerConnections = new InnerConnections()
  const local = { credential, connections }
  const byKey = createAuthenticator(config.masterKeys, apiKeys, local, innerConnections.clients)
  const streamSlots = createStreamSlots(config.maxStreamsPerConversation)
  const http = await createHttpServer({
    manager,
    models: new KnownModels({ catalog: services.catalog, defaults: config.defaultLlm, manager }),
    replays,
    search,
    firehose,
    authenticate: async (header, connection) => {
      const rights = cluster?.rightsOn(connection, header)
      return rights ? { ...rights, isForwarded: true } : await byKey(header, connection)
    },
    peers: cluster && remote && { cluster, remote },
    apiKeys,
    tickets: await openTickets(services),
    pendingAuthorizations: services.pendingAuthorizations,
    profiles: services.profiles,
    hashBody,
    logins,
    info: infoOf(config, launcher, resources),
    readiness: createReadiness({
      dataDir: config.dataDir,
      storageAnswers: storage.availability.answers,
      phase: () => progress.phase,
    }),
    isStarting: () => !progress.isLoaded,
    untilStarted: (signal) => orAborted(progress.loading.promise, signal),
    metrics,
    streamSlots,
    firehoseSlots: createFirehoseSlots(config.maxFirehoseStreams),
    corsOrigins: config.corsOrigins,
    trustProxy: config.trustProxy,
    maxKeyless: keylessLimit(ownOpenFiles()),
    logger,
  })
  const { profiles } = services
  const { corsOrigins, publicUrl, plainModels } = config
  const hasPeers = cluster !== undefined
  const routeDeps = { manager, profiles, streamSlots, metrics, corsOrigins, innerConnections, hasPeers }
  const deps = { ...routeDeps, plainModels, publicUrl, version: VERSION, loaded: progress.loading.promise }
  for (const protocol of await Promise.all(config.protocols.map(loadProtocol)))
    if (protocol) await http.register(protocol.routes, deps)
  await http.register(pageRoutes)
  dashboardRoutes(http)
  return http
}

/** Stops a server, too, that is part of another program, which may not wait for it. */
function untilTakenOver({ storage, logger }: Services, close: () => Promise<unknown>): Promise<never> {
  const { takenOver } = storage.availability
  const end = untilAborted(takenOver).then((): never => {
    logger.fatal({ err: takenOver.reason }, 'another server has taken over the database: stopping')
    void close()
    throw takenOver.reason
  })
  end.catch(() => {}) // reported to the caller that waits for it
  return end
}

async function loadConversations(
  manager: ConversationManager,
  replays: Replays,
  progress: Progress,
  logger: Logger,
): Promise<void> {
  await manager.start()
  await replays.start()
  progress.isLoaded = true
  progress.loading.resolve()
  if (progress.phase === 'starting') progress.phase = 'running'
  // Runs while the first requests are served: many conversations may have due deliveries.
  manager.resumeDeliveries().catch((error: unknown) => logger.error({ err: error }, 'deliveries could not be resumed'))
}

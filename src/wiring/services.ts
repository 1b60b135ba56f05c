/** What the server stands on, opened while its other code is loaded: the data directory, the sandbox, the resource limits. */
import { ApiKeys } from '../access/api-keys.ts'
import type { Config } from '../config/config.ts'
import { wantsColor } from '../config/config.ts'
import type { Profiles } from '../conversations/profiles/profiles.ts'
import { createCallbackDispatcher } from '../webhooks/dispatcher.ts'
import { lazily } from '../lib/lazily.ts'
import { Queue } from '../lib/queue.ts'
import { createResourceLimiter } from '../limits/resource-limits.ts'
import { PendingAuthorizations } from '../mcp/oauth/pending-authorizations.ts'
import { createGuardedFetch } from '../security/guarded-fetch.ts'
import { createSharedAutomata } from '../security/redaction/shared-automata.ts'
import { createSafeFetch } from '../security/safe-fetch.ts'
import { openFileStorage } from '../storage/files/file-storage.ts'
import type { Sharing } from '../storage/postgres/incarnation.ts'
import type { Storage } from '../storage/storage.ts'
import { loadProtocol } from '../protocols/protocol-routes.ts'
import type { Logger } from '../telemetry/logger.ts'
import { createLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { loadPrettyLines } from '../telemetry/pretty-lines.ts'
import type { ManagerParts } from './create-manager.ts'
import type { HeldAccess } from './held-access.ts'
import type { HashBody } from '../security/body-hash.ts'
import { createBodyHash } from '../security/body-hash.ts'
import type { LoginSupport } from '../http/guards/find-login.ts'
import { createLoginSupport } from './login-support.ts'
import { findSandbox } from './sandbox.ts'
import { createServerRedactor, warnOfGuessableKeys } from './server-redactor.ts'
import { USER_AGENT, VERSION } from './version.ts'
import { MODEL_CATALOG, readAsset } from '../http/assets.ts'
import { EndpointLimits } from '../llm/catalog/endpoint-limits.ts'
import { ModelCatalog } from '../llm/catalog/model-catalog.ts'

/** The dependencies of conversations and of the HTTP server. */
export type Services = ManagerParts & {
  readonly apiKeys: ApiKeys
  readonly logins: LoginSupport
  readonly hashBody: HashBody
  readonly missingSandbox: string | undefined
  /** The port that it listens on, as soon as it does: a free one may be asked for. */
  readonly served: { port: string | undefined }
}

/** What must be closed is added to `started`. Throws if one of them cannot be opened. */
export async function startServices(
  config: Config,
  localCredential: string,
  startedParts: AsyncDisposableStack,
  sharing: Sharing = config.cluster ? 'shared' : 'alone',
): Promise<Services> {
  // It takes as long as the next steps together, in a separate process.
  const sandbox = findSandbox(config)
  sandbox.catch(() => {}) // reported where it is awaited
  // The last step: shells may still run before. A program can start and close many servers.
  startedParts.defer(async () => (await sandbox.catch(() => undefined))?.close?.())
  const automataOf = createSharedAutomata()
  const logger = createLogger({
    level: config.logLevel,
    redact: createServerRedactor({ ...config, localCredential }, automataOf).redact,
    render: config.logFormat === 'pretty' ? await loadPrettyLines({ color: wantsColor() }) : undefined,
  })
  const metrics = new Metrics()
  const storage = await openStorage(config, sharing, { logger, metrics })
  startedParts.use(storage)
  const heldAccess = await guardLease(storage, startedParts, logger)
  const { lease } = storage.availability
  const limiting = createResourceLimiter({
    limits: config.limits,
    dataDir: config.dataDir,
    onError: (error) => logger.error({ err: error }, 'the use of resources cannot be watched'),
  })
  limiting.catch(() => {}) // reported where it is awaited
  warnOfGuessableKeys(config, logger)
  const apiKeys = startedParts.use(await ApiKeys.open(storage.apiKeys))
  if (lease) apiKeys.watch()
  const hashBody = createBodyHash(storage.keys.material)
  const logins = startedParts.use(
    createLoginSupport({
      storage,
      apiKeys,
      hashBody,
      masterKeys: config.masterKeys,
      isShared: lease !== undefined,
      isInsecureAllowed: config.isInsecureLoginAllowed,
    }),
  )
  const { launcher, missing: missingSandbox } = await sandbox
  const resources = await limiting
  const catalog = await openCatalog(config)
  const callbackFetch = createSafeFetch({ allow: config.callbackAllow })
  const dispatcher = createCallbackDispatcher({
    fetch: callbackFetch,
    userAgent: USER_AGENT,
    bodyOf: async (name) => (await loadProtocol(name))?.deliveryBody,
    lease,
  })
  startedParts.defer(() => dispatcher.close())
  const web = createSafeFetch({ allow: [] })
  startedParts.defer(() => web.close())
  const mcp = createGuardedFetch({ allow: config.mcpAllow })
  startedParts.defer(() => mcp.close())
  const servedAt: Services['served'] = { port: undefined }
  const slots = new Queue({ limit: config.maxConcurrentRuns })
  const sharedParts = {
    localCredential,
    storage,
    logger,
    automataOf,
    launcher,
    resources,
    catalog,
    metrics,
    slots,
    dispatcher,
    callbackFetch,
    web,
    mcpFetch: heldAccess?.toMcp(mcp.fetch) ?? mcp.fetch,
    held: heldAccess,
    pendingAuthorizations: new PendingAuthorizations(),
    profiles: lazily(() => openProfiles(storage)),
    publicUrl: () => config.publicUrl ?? `http://127.0.0.1:${servedAt.port ?? config.port}`,
  }
  return { ...sharedParts, apiKeys, logins, hashBody, missingSandbox, served: servedAt }
}

async function openProfiles({ profiles: table, keys }: Storage): Promise<Profiles> {
  const { Profiles: ProfileStore } = await import('../conversations/profiles/profiles.ts')
  return new ProfileStore({ table, keys: keys.material })
}

const SET_ASIDE =
  'files of an earlier version were found in the data directory. They were moved and not read, because tables.db counts. To return to an earlier state, restore the whole data directory from a backup.'

/** Nothing of it is loaded where no other instance can take over. */
async function guardLease(
  { availability: { lease, takenOver }, directory }: Storage,
  startedParts: AsyncDisposableStack,
  logger: Logger,
): Promise<HeldAccess | undefined> {
  if (!lease) return undefined
  const { ProcessGuard } = await import('../shell/guard/process-guard.ts')
  const { createHeldAccess } = await import('./held-access.ts')
  const onFault = (error: unknown) => logger.error({ err: error }, 'the guard of the processes ended')
  startedParts.use(new ProcessGuard({ lease, takenOver, directory, onFault }))
  return createHeldAccess(lease)
}

/** What PostgreSQL needs is loaded only with it. */
async function openStorage(
  {
    dataDir: directory,
    secretKeys: operatorKeys,
    databaseUrl: url,
    databaseSessionUrl: sessionUrl,
    databaseOutageSeconds,
    sharedDir: sharedDirectory,
  }: Config,
  sharing: Sharing,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
): Promise<Storage> {
  const warn = (what: string) => (error: unknown) => logger.warn({ err: error }, what)
  const sharedOptions = { directory, operatorKeys }
  if (url === undefined) {
    const onFault = warn('a start has to read more: the summaries could not be read or written')
    const onSetAside = (paths: readonly string[]) => logger.warn({ paths }, SET_ASIDE)
    return await openFileStorage({ ...sharedOptions, onFault, onSetAside })
  }
  const { ClusterMetrics } = await import('../telemetry/cluster-metrics.ts')
  metrics.cluster = new ClusterMetrics()
  const { openPostgresStorage } = await import('../storage/postgres/postgres-storage.ts')
  const onFault = warn('the database could not be used for its lock or for caches')
  return await openPostgresStorage({
    ...sharedOptions,
    sharedDirectory,
    url,
    sessionUrl,
    sharing,
    outageMs: databaseOutageSeconds * 1000,
    serverVersion: VERSION,
    metrics: metrics.cluster,
    onWarning: (warning) => logger.warn(warning),
    onAway: warn('the database cannot be reached: the start waits for it'),
    onFault,
  })
}

/** Throws a `ConfigError` if the file of the operator cannot be used. */
async function openCatalog({ modelCatalog: path }: Config): Promise<ModelCatalog> {
  const file =
    path === undefined ? undefined : await (await import('../config/model-catalog.ts')).readModelCatalog(path)
  const readBundled = () => readAsset(MODEL_CATALOG).toString()
  return new ModelCatalog({ readBundled, file, limits: new EndpointLimits() })
}

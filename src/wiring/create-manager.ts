/** Wires the conversations of the server: their storage, the firehose, shared dependencies, and the manager. */
import { snapshotsOf } from '../workspace/snapshots/snapshots.ts'
import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import type { Config } from '../config/config.ts'
import type { ConversationDeps, Execution } from '../conversations/dependencies.ts'
import type { ModelAccess } from '../conversations/runs/llm-factory.ts'
import { isMemoryShort } from '../conversations/idle/idle-watch.ts'
import { areFilesShort, areProcessesShort, ownOpenFiles } from '../limits/own-limits.ts'
import { KnownConversations } from '../conversations/registry/known-conversations.ts'
import { ConversationManager } from '../conversations/manager.ts'
import { Firehose } from '../events/firehose.ts'
import type { CallbacksOf } from '../hooks/select-hooks.ts'
import { UnfinishedFiles } from '../files/jail/unfinished-files.ts'
import { gitIdentities } from '../shell/git-identity.ts'
import { findGit } from '../workspace/git/run-git.ts'
import { findProgram, HostEnvironment } from '../lib/start-process.ts'
import { lazily } from '../lib/lazily.ts'
import { Queue } from '../lib/queue.ts'
import type { Profiles } from '../conversations/profiles/profiles.ts'
import type { ResourceLimiter } from '../limits/resource-limits.ts'
import type { ModelCatalog } from '../llm/catalog/model-catalog.ts'
import { VendorKeys } from '../llm/endpoints/vendor-keys.ts'
import { HttpLlm } from '../llm/http-llm.ts'
import { Paces } from '../llm/pacing/paces.ts'
import { createPooledFetch } from '../llm/connection/pooled-fetch.ts'
import { OAUTH_CALLBACK } from '../contract/mcp/mcp-oauth.ts'
import type { PendingAuthorizations } from '../mcp/oauth/pending-authorizations.ts'
import { createConnectionPermits } from '../network/connection-permits.ts'
import { createOutboundConnector } from '../network/outbound-connector.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import { createEndpointRules } from '../security/endpoint-rules.ts'
import { createConnector } from '../security/guarded-connector.ts'
import type { UrlFetch } from '../security/guarded-fetch.ts'
import type { SafeFetch } from '../security/safe-fetch.ts'
import type { AutomataOf } from '../security/redaction/shared-automata.ts'
import { removeLeftShells } from '../shell/left-shells.ts'
import type { IsOurs } from '../shell/processes/marked-processes.ts'
import { endAllMarked, endOrphans } from '../shell/processes/marked-processes.ts'
import { BashShells } from '../shell/shells.ts'
import type { Lease } from '../storage/lease/lease.ts'
import type { Storage } from '../storage/storage.ts'
import { fileRules, homesOf, outputsOf, privateOf, shellsOf } from './conversation-places.ts'
import type { HeldAccess } from './held-access.ts'
import { HomeViews } from './home-views.ts'
import { serverNetwork } from './sandbox.ts'
import { createSearch } from './search.ts'
import { createServerRedactor } from './server-redactor.ts'
import type { SharedByTools } from './tools.ts'
import { toolsExecution } from './tools.ts'
import { USER_AGENT, VERSION } from './version.ts'

/** Concurrent file operations of clients; the remaining threads are for the logs. */
const FILE_OPERATIONS = 8

export type ManagerParts = Pick<ConversationDeps, 'storage' | 'logger' | 'metrics' | 'slots' | 'dispatcher'> & {
  /** The credential for programs of the same user. It encrypts nothing. */
  readonly localCredential: string
  readonly automataOf: AutomataOf
  readonly launcher: ShellLauncher
  readonly resources: ResourceLimiter
  /** What is known about models. */
  readonly catalog: ModelCatalog
  /** Reaches public addresses only, for the agents. */
  readonly web: SafeFetch
  /** Undefined where no other instance can take over. */
  readonly held: HeldAccess | undefined
  /** Reaches public addresses, and those that the operator allows, for callbacks and hooks. */
  readonly callbackFetch: SafeFetch
  readonly callbackHooksOf?: CallbacksOf | undefined
  /** Whether the server is part of a program on the machine of a person. */
  readonly isLocal?: boolean
  /** Reaches public addresses, and those that the operator allows, for MCP servers. */
  readonly mcpFetch: UrlFetch
  readonly pendingAuthorizations: PendingAuthorizations
  /** Loaded when they are used first. */
  readonly profiles: () => Promise<Profiles>
  /** The URL at which browsers reach this server, without a slash at the end. */
  readonly publicUrl: () => string
}

export async function createManager(
  config: Config,
  parts: ManagerParts,
): Promise<{ manager: ConversationManager; firehose: Firehose; search: ReturnType<typeof createSearch> }> {
  const { storage, logger, resources } = parts
  // Use the real path: shells know it by this name, even if they cannot see a link that points to it.
  const dataDir = await realpath(config.dataDir)
  await makeDirectories(config.workdirBase, 0o700)
  const unfinishedFiles = new UnfinishedFiles(join(dataDir, 'unfinished'))
  await unfinishedFiles.removeLeft((error) =>
    logger.warn({ err: error }, 'a temporary file that an earlier server has left could not be removed'),
  )
  const endLeftProcesses = async (isOurs: IsOurs) => [
    ...new Set([...resources.ended, ...(await endOrphans(dataDir, isOurs))]),
  ]
  const knownConversations = new KnownConversations({
    storage,
    workdirBase: config.workdirBase,
    endOrphans: endLeftProcesses,
    removeLeft: (id) => removeLeft(storage, id),
    logger,
  })
  const firehose = new Firehose({
    // Readers with a limited key see events of conversations that are known.
    orders: { open: (onNews) => storage.firehose.open(onNews, () => knownConversations.upToDate()) },
    store: storage,
    heads: () => knownConversations.heads(),
    onFault: (error, id) => logger.error({ err: error, conversation_id: id }, 'the firehose cannot deliver all events'),
  })
  const leaving = new AbortController()
  const manager = new ConversationManager({
    leaving,
    conversations: {
      ...conversationDeps(config, { ...parts, dataDir, unfinished: unfinishedFiles }),
      leaving: leaving.signal,
      onLogOpened(log) {
        knownConversations.attach(log)
        // Created after it: the firehose reads the heads of the logs.
        firehose.attach(log)
      },
    },
    knownConversations,
    endOrphans: endLeftProcesses,
    onDeleted: (owner) => firehose.announceDeleted(owner),
    withProfile: async (request) => (await parts.profiles()).applyTo(request),
    idle: { afterMs: config.idleSeconds * 1000, isShort: createIsShort() },
    endProcesses: async () => (await endAllMarked(dataDir)).map(({ pid }) => pid),
  })
  const { hidden } = manager
  const search = createSearch(config.isSearchOn, {
    registry: knownConversations,
    hidden,
    index: storage.search,
    logs: storage,
    logger,
  })
  return { manager, firehose, search }
}

/** The limit is read in advance: without a free descriptor it cannot be. */
function createIsShort(): () => boolean {
  const maxFiles = ownOpenFiles()
  return () => isMemoryShort() || areProcessesShort() || areFilesShort(maxFiles)
}

async function removeLeft(storage: Storage, id: string): Promise<void> {
  const own = storage.conversation(id)
  await own.removeLeft()
  await removeLeftShells(shellsOf(join(storage.directory, id)), outputsOf(own.directory))
}

type SharedParts = ManagerParts & { readonly dataDir: string; readonly unfinished: UnfinishedFiles }

function conversationDeps(config: Config, parts: SharedParts): Omit<ConversationDeps, 'onLogOpened'> {
  const { logger, automataOf, launcher, resources, metrics, slots, dispatcher, storage, dataDir, unfinished, web } =
    parts
  const { callbackFetch, mcpFetch, pendingAuthorizations: pending, localCredential, held } = parts
  const { lease } = storage.availability
  const reach = createOutboundConnector({ privateRules: config.networkPrivateRules })
  const env = HostEnvironment.from(config.environment)
  const homes = parts.isLocal ? new HomeViews(dataDir, gitIdentities(env), config.environment) : undefined
  const files = {
    io: new Queue({ limit: FILE_OPERATIONS }),
    unfinished,
    ripgrep: lazily(() => findProgram('rg', env.path)),
    git: { launcher, program: lazily(findGit) },
  }
  const sharedDirs = config.sharedDir === undefined ? [] : [config.sharedDir]
  const hiddenPaths = [storage.directory, ...sharedDirs, config.workdirBase, ...config.secretFiles.map(dirname)]
  return {
    storage,
    server: { version: VERSION, isolation: launcher.isolation, sandbox: launcher.sandbox },
    models: modelAccess(config, parts),
    workspace: {
      workdirRules: {
        base: config.workdirBase,
        roots: config.workdirRoots,
        forbidden: [dataDir, ...sharedDirs],
        unholdable: launcher.isolation === 'none' ? [] : hiddenPaths,
        trusted: config.userSettingsDir === undefined ? [] : [config.userSettingsDir],
      },
      files,
      snapshotLimits: { maxAgeMs: config.snapshotDays * 86_400_000, maxBytes: config.snapshotBytes },
      userSettings: config.userSettingsDir,
      fileRules: (conversation) => fileRules(config, launcher, conversation, homes),
      homesOf: (directory) => homesOf(launcher, env, directory),
    },
    exec: execution(config, launcher, { env, homes, web, lease, storage, ...files }),
    limits: {
      check: (requestedLimits) => resources.check(requestedLimits),
      inForce: (requestedLimits) => resources.inForce(requestedLimits),
      limit: ({ directory, commandOutputs, directories, ...options }) =>
        resources.limit({
          ...options,
          stateDir: shellsOf(join(storage.directory, options.conversationId)),
          roots: () => [
            ...directories(),
            outputsOf(directory),
            privateOf(directory),
            snapshotsOf(directory),
            commandOutputs,
          ],
        }),
    },
    network: {
      server: serverNetwork(config, launcher),
      reach: held?.toHosts(reach) ?? reach,
      createPermits: createConnectionPermits(),
      onOutcome: metrics.networkDecided,
    },
    mcp: {
      fetch: mcpFetch,
      pending,
      redirectUrl: () => `${parts.publicUrl()}${OAUTH_CALLBACK}`,
      keptBytes: config.maxOutputBytes,
      outputsOf,
    },
    dispatcher,
    hooks: { fetch: callbackFetch, userAgent: USER_AGENT, callbacksOf: parts.callbackHooksOf, lease },
    slots,
    metrics,
    logger,
    createRedactor: (id) => createServerRedactor({ ...config, localCredential }, automataOf, homes?.secretsFor(id)),
  }
}

/** All conversations share one pool of connections, and the pace of each endpoint. */
function modelAccess(config: Config, { logger, catalog, isLocal, held }: ManagerParts): ModelAccess {
  const vendorKeys = isLocal ? new VendorKeys(config.environment) : undefined
  const endpoints = config.llmAllow.length > 0 ? createEndpointRules(config.llmAllow) : undefined
  const pooledFetch = createPooledFetch({ connector: () => endpoints?.connector() ?? createConnector() })
  const fetch = held?.toModels(pooledFetch) ?? pooledFetch
  const paces = new Paces()
  return {
    catalog,
    defaults: { ...config.defaultLlm, vendorKeys },
    endpointRefusal: async (url) => await endpoints?.refusal(url),
    createLlm({ conversationId, ...options }) {
      const logPayload = (payload: object) =>
        logger.info({ conversation_id: conversationId, ...payload }, 'llm payload')
      return new HttpLlm({
        ...options,
        catalog,
        fetch,
        paces,
        vendorKeys,
        ...(config.logLlmPayloads && { logPayload }),
      })
    },
  }
}

type OfShells = {
  readonly env: HostEnvironment
  /** Undefined: a server for others shows nobody the home of its user, and commits have no name. */
  readonly homes: HomeViews | undefined
  readonly lease: Lease | undefined
  readonly storage: Pick<Storage, 'directory'>
}

function execution(
  config: Config,
  launcher: ShellLauncher,
  { env, homes, lease, storage, ...sharedDeps }: SharedByTools & OfShells,
): Execution {
  return {
    ...toolsExecution(config, launcher, { homes, ...sharedDeps }),
    createShells: ({ directory, limits, secretsEnv, ...options }) =>
      limits.limitShells(
        new BashShells({
          ...options,
          secretsEnv: () => ({
            ...homes?.variablesFor(options.conversationId, launcher),
            ...secretsEnv(),
          }),
          // Pipes are local, and processes are found by this directory.
          stateDir: shellsOf(join(storage.directory, options.conversationId)),
          keptDir: shellsOf(directory),
          outputDir: outputsOf(directory),
          privateDir: privateOf(directory),
          env,
          launcher: limits.limitLauncher(homes?.launcherFor(options.conversationId, launcher, limits) ?? launcher),
          limits: { outputBytes: config.maxOutputBytes, lease },
        }),
      ),
  }
}

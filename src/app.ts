/** The composition root: builds every long-lived object in the order of their needs, and takes them apart in reverse. */
import { ApiKeys } from './access/api-keys.ts'
import { StreamTickets } from './access/stream-tickets.ts'
import { mkdir, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import type { Config } from './config/config.ts'
import { ConfigError } from './config/environment.ts'
import type { ServerNetwork } from './contract/network.ts'
import { Status } from './contract/events/status.ts'
import type { Info } from './contract/server.ts'
import type { AssemblyDeps } from './conversations/assemble.ts'
import { createAssembler } from './conversations/assembly.ts'
import { createCallbackDispatcher } from './conversations/webhooks/dispatcher.ts'
import { createCatalog } from './conversations/registry/catalog.ts'
import { DEFAULT_COMMAND_LIMITS } from './conversations/exec/client-commands.ts'
import { isMemoryShort } from './conversations/idle/memory-pressure.ts'
import { ConversationManager } from './conversations/registry/manager.ts'
import { SummaryFile } from './conversations/registry/summary-file.ts'
import { lockDataDirectory } from './events/store/data-lock.ts'
import { Firehose } from './events/firehose/firehose.ts'
import { createJsonlStore } from './events/store/jsonl-store.ts'
import { createConnectionPermits } from './network/connection-permits.ts'
import { createOutboundConnector } from './network/outbound-connector.ts'
import { createAuthenticator } from './http/guards/auth.ts'
import { pageRoutes } from './http/docs.ts'
import { MAX_HEADER_BYTES } from './http/guards/client-error.ts'
import { createReadiness } from './http/readiness.ts'
import { listenOn } from './http/listen.ts'
import { createHttpServer, cutConnections } from './http/server.ts'
import { createFirehoseSlots, createStreamSlots } from './http/streams/stream-slots.ts'
import { OpenAiChat } from './llm/openai-chat.ts'
import { createPooledFetch } from './llm/pooled-fetch.ts'
import { createBodyHash } from './security/body-hash.ts'
import { openDataKeys } from './security/data-keys.ts'
import { createEndpointRules } from './security/endpoint-rules.ts'
import type { EndpointRules } from './security/endpoint-rules.ts'
import { findWeakness } from './security/redaction/guessable-key.ts'
import { createRedactor } from './security/redaction/redactor.ts'
import type { AutomataOf } from './security/redaction/shared-automata.ts'
import { createSharedAutomata } from './security/redaction/shared-automata.ts'
import type { Redactor } from './security/redaction/redactor.ts'
import { createSafeFetch } from './security/safe-fetch.ts'
import { createSecretStore } from './security/secret-store.ts'
import { lazily } from './lib/lazily.ts'
import { Queue } from './lib/queue.ts'
import type { Logger } from './telemetry/logger.ts'
import { createLogger } from './telemetry/logger.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { TOOL_NAMES, createTools } from './tools/registry.ts'
import { createEditorFiles } from './files/editor-files.ts'
import type { FileRules } from './files/file-gate.ts'
import { findBubblewrap, findProgram } from './sandbox/find-launcher.ts'
import { hostLauncher } from './sandbox/host-launcher.ts'
import { limitEditor } from './limits/limited-editor.ts'
import type { ResourceLimiter } from './limits/resource-limits.ts'
import { createResourceLimiter } from './limits/resource-limits.ts'
import { endAllMarked, endOrphans } from './shell/processes/marked-processes.ts'
import type { ShellLauncher } from './sandbox/launch.ts'
import { pathsNamedIn, shellEnvironment } from './shell/shell-environment.ts'
import { MAX_SHELL_SESSIONS } from './shell/shell-limits.ts'
import { BashShells } from './shell/shells.ts'
import { hiddenFromShells, readableByShells } from './sandbox/mounts.ts'

export const VERSION: string = manifest.version

export type App = {
  /** Where it listens, for instance `http://127.0.0.1:8000`. */
  readonly url: string
  readonly logger: Logger
  /** Why there is no wall around commands, as a clause; undefined when there is one. */
  readonly noWall: string | undefined
  /** Resolves when it is known which conversations there are; until then only what needs none is answered. Rejects when that cannot be found out. */
  readonly ready: Promise<void>
  /**
   * Stops taking requests, ends streams and runs, flushes, and releases the data directory. May be called twice. Returns whether
   * all of it has ended: else conversations were cut off, or processes are still running.
   */
  readonly close: () => Promise<boolean>
}

/** How long connections that do not end by themselves are waited for at a stop, milliseconds. */
const DRAIN_TIMEOUT_MS = 1000

/** Waits for the file system on behalf of clients' file requests at a time; of the threads there are, the others are for the logs. */
const FILE_OPERATIONS = 8
const LOCKED_KEYS =
  'some secrets were encrypted under a key that is not set now, and cannot be read; start with it after a comma in OPENHANDS_MASTER_KEY, or set the OPENHANDS_SECRET_KEY of then'

/** Resolves when the server listens, and starts from there: see `ready`. What was started is taken apart again when a later step fails. */
export async function startApp(config: Config): Promise<App> {
  const started = new AsyncDisposableStack()
  // It takes as long as the next steps together, in a process of its own.
  const finding = findWall(config)
  finding.catch(() => {}) // told where it is awaited
  try {
    const automataOf = createSharedAutomata()
    const logger = createLogger({ level: config.logLevel, redact: redactorOf(config, automataOf).redact })
    started.use(await lockDataDirectory(config.dataDir))
    const limiting = createResourceLimiter({
      limits: config.limits,
      dataDir: config.dataDir,
      onError: (error) => logger.error({ err: error }, 'the use of resources cannot be watched'),
    })
    limiting.catch(() => {}) // told where it is awaited
    // Meanwhile the wall is looked for.
    const dataKeys = await openDataKeys(config.dataDir, config.secretKeys)
    if (dataKeys.locked > 0) logger.warn(LOCKED_KEYS)
    warnOfGuessableKeys(config, logger)
    const { launcher, missing: noWall } = await finding
    const resources = await limiting
    const metrics = createMetrics()
    const apiKeys = started.use(await ApiKeys.open(join(config.dataDir, 'keys.json')))
    const slots = new Queue({ limit: config.maxConcurrentRuns })
    const dispatcher = createCallbackDispatcher({
      fetch: createSafeFetch({ allow: config.callbackAllow }),
      userAgent: `agent-server/${VERSION}`,
    })
    started.defer(() => dispatcher.close())
    const parts = {
      logger,
      automataOf,
      launcher,
      resources,
      metrics,
      slots,
      dispatcher,
      keyMaterial: dataKeys.material,
    }
    const { manager, firehose } = await createManager(config, parts)
    let phase: 'starting' | 'running' | 'stopping' = 'starting'
    let isLoaded = false
    metrics.watch({
      conversationsByStatus: () => (isLoaded ? countByStatus(manager) : {}),
      activeRuns: () => slots.active,
      queuedRuns: () => slots.waiting,
      callbackAttempts: () => dispatcher.stats().attempts,
      callbacksUnderWay: () => dispatcher.stats().underWay,
      callbackWaitMs: () => dispatcher.stats().oldestWaitingMs,
    })

    const http = await createHttpServer({
      manager,
      firehose,
      authenticate: createAuthenticator(config.masterKeys, apiKeys),
      apiKeys,
      tickets: new StreamTickets(),
      hashBody: createBodyHash(dataKeys.material),
      info: infoOf(config, launcher, resources),
      readiness: createReadiness({ dataDir: config.dataDir, phase: () => phase }),
      isStarting: () => !isLoaded,
      metrics,
      streamSlots: createStreamSlots(config.maxStreamsPerConversation),
      firehoseSlots: createFirehoseSlots(config.maxFirehoseStreams),
      corsOrigins: config.corsOrigins,
      trustProxy: config.trustProxy,
      logger,
    })
    await http.register(pageRoutes)
    // After the conversations: their last events are told too.
    started.defer(() => firehose.close())
    let isComplete = true
    started.defer(async () => {
      isComplete = await manager.close()
    })
    const listening = await listenOn(http, config)
    if (listening.warning !== undefined) logger.warn(listening.warning)
    const start = async () => {
      await manager.start()
      isLoaded = true
      if (phase === 'starting') phase = 'running'
      // Beside the first requests: what is due may be in many conversations.
      manager
        .resumeDeliveries()
        .catch((error: unknown) => logger.error({ err: error }, 'deliveries could not be resumed'))
    }
    const ready = start()
    ready.catch(() => {}) // reported to the caller that waits for it

    const close = async () => {
      phase = 'stopping'
      // It stops listening at once and resolves when every connection is gone; the streams end as the manager closes.
      const drained = listening.close()
      await started.disposeAsync()
      const timer = setTimeout(() => cutConnections(http), DRAIN_TIMEOUT_MS)
      await drained
      clearTimeout(timer)
      return isComplete
    }
    let closing: Promise<boolean> | undefined
    return { url: listening.url, logger, noWall, ready, close: () => (closing ??= close()) }
  } catch (error) {
    await started.disposeAsync()
    throw error
  }
}

type Wall = { readonly launcher: ShellLauncher; readonly missing?: string }

/** Throws a `ConfigError` when there has to be a wall and cannot be one. */
async function findWall(config: Config): Promise<Wall> {
  if (config.isolation === 'none') return { launcher: hostLauncher, missing: 'OPENHANDS_ISOLATION is none' }
  const env = shellEnvironment(config.environment)
  const found = await findBubblewrap({
    dataDir: config.dataDir,
    workdirBase: config.workdirBase,
    keyFiles: config.secretFiles,
    home: homedir(),
    path: env['PATH']!,
    named: pathsNamedIn(env),
    readable: config.sandboxReadable,
  })
  if ('launcher' in found) return found
  if (config.isolation === 'bubblewrap')
    throw new ConfigError(`OPENHANDS_ISOLATION=bubblewrap cannot be had: ${found.missing}.`)
  return { launcher: hostLauncher, missing: found.missing }
}

type ManagerParts = Pick<AssemblyDeps, 'logger' | 'metrics' | 'slots' | 'dispatcher'> & {
  readonly automataOf: AutomataOf
  readonly launcher: ShellLauncher
  readonly resources: ResourceLimiter
  readonly keyMaterial: readonly [string, ...string[]]
}

async function createManager(
  config: Config,
  parts: ManagerParts,
): Promise<{ manager: ConversationManager; firehose: Firehose }> {
  const { logger, automataOf, launcher, resources, metrics, slots, dispatcher, keyMaterial } = parts
  // Shells know it by this name, also where a link that leads there is out of their sight.
  const dataDir = await realpath(config.dataDir)
  const sessions = join(dataDir, 'sessions')
  await mkdir(config.workdirBase, { recursive: true, mode: 0o700 })
  const catalog = await createCatalog(dataDir)
  const env = shellEnvironment(config.environment)
  const endpoints = config.llmAllow.length > 0 ? createEndpointRules(config.llmAllow) : undefined
  const hidden = [sessions, config.workdirBase, ...config.secretFiles.map(dirname)]
  const store = createJsonlStore({ directory: sessions })
  const firehose = new Firehose({
    path: join(dataDir, 'firehose'),
    store,
    heads: () => manager.heads(),
    onFault: (error, id) => logger.error({ err: error, conversation_id: id }, 'the firehose cannot tell all events'),
  })
  const assembler = createAssembler({
    store,
    catalog,
    secretStore: createSecretStore({ directory: sessions, keyMaterial }),
    dispatcher,
    workdirRules: {
      base: config.workdirBase,
      roots: config.workdirRoots,
      forbidden: dataDir,
      unholdable: launcher.isolation === 'none' ? [] : hidden,
    },
    llmDefaults: config.defaultLlm,
    version: VERSION,
    isolation: launcher.isolation,
    resources,
    limitConversation: ({ directory, workdir, ...options }) =>
      resources.limit({
        ...options,
        stateDir: shellsOf(directory),
        roots: () => [workdir(), outputsOf(directory), privateOf(directory), join(directory, 'commands')],
      }),
    network: {
      server: networkOf(config, launcher),
      reach: createOutboundConnector({ privateRules: config.networkPrivateRules }),
      createPermits: createConnectionPermits(),
      onOutcome: metrics.networkDecided,
    },
    sandbox: launcher.sandbox,
    slots,
    metrics,
    logger,
    createRedactor: () => redactorOf(config, automataOf),
    createLlm: createLlmWith(config, logger, endpoints),
    endpointRefusal: async (url) => await endpoints?.refusal(url),
    createShells: ({ directory, limits, ...options }) =>
      limits.limitShells(
        new BashShells({
          ...options,
          stateDir: shellsOf(directory),
          outputDir: outputsOf(directory),
          privateDir: privateOf(directory),
          env,
          launcher: limits.limitLauncher(launcher),
          limits: { outputBytes: config.maxOutputBytes },
        }),
      ),
    files: { io: new Queue({ limit: FILE_OPERATIONS }), ripgrep: lazily(() => findProgram('rg', env['PATH']!)) },
    fileRules: (conversation) => fileRules(config, launcher, conversation),
    createTools(names, { quota, ...deps }) {
      const files = createEditorFiles(() => fileRules(config, launcher, deps))
      return createTools(names, { ...deps, files: quota ? limitEditor(files, quota) : files })
    },
    onLogOpened(log) {
      manager.attach(log)
      // After it: the firehose asks the manager how far the logs are.
      firehose.attach(log)
    },
  })
  const manager: ConversationManager = new ConversationManager({
    catalog,
    summaryFile: new SummaryFile({
      path: join(dataDir, 'summaries'),
      onFault: (error) =>
        logger.warn({ err: error }, 'the next start has to read more: summaries could not be written'),
    }),
    assembler,
    workdirBase: config.workdirBase,
    endOrphans: async (isOurs) => [...new Set([...resources.ended, ...(await endOrphans(dataDir, isOurs))])],
    onDeleted: (owner) => firehose.announceDeleted(owner),
    idle: { afterMs: config.idleSeconds * 1000, isMemoryShort },
    endProcesses: async () => (await endAllMarked(dataDir)).map(({ pid }) => pid),
    logger,
  })
  return { manager, firehose }
}

/**
 * The editor and the routes for files work in this process. So nothing of `/proc` is for it, where `self` is the server and `environ` its
 * secrets; nor are the server's files, but the workdirs among them and the full outputs that results name. With a wall it
 * stays behind that, as the shells do: it would else write where they cannot, and what it wrote there would run.
 */
function fileRules(config: Config, { isolation }: ShellLauncher, conversation: Places): FileRules {
  const { dataDir, workdirBase, secretFiles, sandboxReadable } = config
  const outputs = outputsOf(conversation.stateDirectory)
  if (isolation === 'none') {
    return { forbidden: [dataDir, '/proc', ...secretFiles], permitted: [workdirBase], readable: [outputs] }
  }
  const workdir = conversation.workdir()
  const hidden = hiddenFromShells({ dataDir, workdirBase, keyFiles: secretFiles, home: homedir() })
  return {
    forbidden: [...hidden.filter((path) => path !== workdir), ...(sandboxReadable ? ['/'] : [])],
    permitted: [workdir, privateOf(conversation.stateDirectory)],
    readable: [...(sandboxReadable ? readableByShells(sandboxReadable) : ['/']), outputs],
  }
}

type Places = { readonly stateDirectory: string; readonly workdir: () => string }

const privateOf = (conversationDirectory: string) => join(conversationDirectory, 'private')
const shellsOf = (conversationDirectory: string) => join(conversationDirectory, 'shells')
const outputsOf = (conversationDirectory: string) => join(conversationDirectory, 'outputs')

/** All of them share one pool of connections. */
function createLlmWith(
  { logLlmPayloads }: Config,
  logger: Logger,
  endpoints: EndpointRules | undefined,
): AssemblyDeps['createLlm'] {
  const fetch = createPooledFetch(endpoints && { connector: () => endpoints.connector() })
  return ({ conversationId, ...options }) => {
    const logPayload = (payload: object) => logger.info({ conversation_id: conversationId, ...payload }, 'llm payload')
    return new OpenAiChat({ ...options, fetch, ...(logLlmPayloads && { logPayload }) })
  }
}

/** Knows the server's own secrets; each conversation adds its own to one of its own. */
function redactorOf({ masterKeys, secretKeys, defaultLlm }: Config, automataOf: AutomataOf): Redactor {
  const redactor = createRedactor(automataOf)
  redactor.setServerKey('OPENHANDS_MASTER_KEY', ...masterKeys)
  redactor.setServerKey('OPENHANDS_SECRET_KEY', ...secretKeys.filter((key) => !masterKeys.includes(key)))
  if (defaultLlm.api_key !== undefined) redactor.setServerKey('LLM_API_KEY', defaultLlm.api_key)
  return redactor
}

/** Throws a `ConfigError` when shells cannot be started in the mode that the operator wants: it would else be open. */
function networkOf({ network }: Config, { isolation, isolatesNetwork }: ShellLauncher): ServerNetwork {
  if (isolatesNetwork) return { ...network, modes: ['none', 'allowlist', 'open'] }
  if (network.default.mode === 'open' && network.ceiling.mode === 'open') return { ...network, modes: ['open'] }
  const why = isolation === 'none' ? 'there is no sandbox' : 'sandboxes have no network of their own here'
  throw new ConfigError(
    `OPENHANDS_NETWORK and OPENHANDS_NETWORK_CEILING can only be open: ${why}. Install bubblewrap, or give the container the right to make network namespaces.`,
  )
}

/** What an agent has said is redacted where it holds a server key, and so an agent can try keys. */
function warnOfGuessableKeys({ masterKeys, secretKeys }: Config, logger: Logger): void {
  const own = secretKeys.filter((key) => !masterKeys.includes(key))
  const named = [
    ...masterKeys.map((key) => ['OPENHANDS_MASTER_KEY', key]),
    ...own.map((key) => ['OPENHANDS_SECRET_KEY', key]),
  ]
  for (const [name, key] of named as [string, string][]) {
    const weakness = findWeakness(key)
    if (weakness === undefined) continue
    logger.warn(`${name} can be guessed: ${weakness}; make one with \`openssl rand -hex 32\``)
  }
}

function infoOf(config: Config, launcher: ShellLauncher, resources: ResourceLimiter): Info {
  return {
    name: 'agent-server',
    version: VERSION,
    tools: [...TOOL_NAMES],
    isolation: launcher.isolation,
    ...(launcher.sandbox && { sandbox: launcher.sandbox }),
    network: networkOf(config, launcher),
    limits: {
      max_body_bytes: config.maxBodyBytes,
      max_upload_bytes: config.maxUploadBytes,
      max_header_bytes: MAX_HEADER_BYTES,
      max_output_bytes: config.maxOutputBytes,
      stream_buffer_bytes: config.streamBufferBytes,
      max_concurrent_runs: config.maxConcurrentRuns,
      max_streams_per_conversation: config.maxStreamsPerConversation,
      max_firehose_streams: config.maxFirehoseStreams,
      max_shell_sessions_per_conversation: MAX_SHELL_SESSIONS,
      max_running_commands_per_conversation: DEFAULT_COMMAND_LIMITS.running,
    },
    resource_limits: resources.inForce(),
  }
}

/** All of them, also those that no conversation has now: a line that comes and goes is hard to watch. */
function countByStatus(manager: ConversationManager): Record<string, number> {
  return Object.fromEntries(Status.options.map((status) => [status, manager.count({ status })]))
}

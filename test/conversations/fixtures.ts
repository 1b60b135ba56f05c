/** Conversations in this process: real files, a scripted model over real HTTP, tools of the test's own. */
import { PendingAuthorizations } from '../../src/mcp/oauth/pending-authorizations.ts'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { z } from 'zod'
import type { ConversationView, UpdateConfig } from '../../src/contract/conversation.ts'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Event, EventOf, EventType } from '../../src/contract/events/event.ts'
import type { ConversationDeps, Execution, Workspace } from '../../src/conversations/dependencies.ts'
import type { ModelAccess } from '../../src/conversations/runs/llm-factory.ts'
import { createCallbackDispatcher } from '../../src/webhooks/dispatcher.ts'
import type { CallbackDispatcher, DispatcherOptions } from '../../src/webhooks/dispatcher.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { KnownConversations } from '../../src/conversations/registry/known-conversations.ts'
import type { ManagerDeps } from '../../src/conversations/manager.ts'
import { Profiles } from '../../src/conversations/profiles/profiles.ts'
import { ConversationManager } from '../../src/conversations/manager.ts'
import type { EventLog } from '../../src/events/event-log.ts'
import type { EventStore } from '../../src/events/event-store.ts'
import { Firehose } from '../../src/events/firehose.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { MODEL_CATALOG, readAsset } from '../../src/http/assets.ts'
import { ModelCatalog } from '../../src/llm/catalog/model-catalog.ts'
import { HttpLlm } from '../../src/llm/http-llm.ts'
import { UnfinishedFiles } from '../../src/files/jail/unfinished-files.ts'
import { Queue } from '../../src/lib/queue.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { createSafeFetch } from '../../src/security/safe-fetch.ts'
import { FileStorage } from '../../src/storage/files/file-storage.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import type { Tool, ToolContext } from '../../src/tools/tool.ts'
import type { ToolOutcome } from '../../src/state/tool-call.ts'
import { createConnectionPermits } from '../../src/network/connection-permits.ts'
import { createOutboundConnector } from '../../src/network/outbound-connector.ts'
import { findGit } from '../../src/workspace/git/run-git.ts'
import type { GitAccess } from '../../src/workspace/git/run-git.ts'
import { hostLauncher } from '../../src/sandbox/launch.ts'
import type { ShellLauncher } from '../../src/sandbox/launch.ts'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import type { ResourceLimiter } from '../../src/limits/resource-limits.ts'
import { createResourceLimiter } from '../../src/limits/resource-limits.ts'
import { BashShells } from '../../src/shell/shells.ts'
import { readAll } from '../events/fixtures.ts'
import { expectRulesOnDisk } from '../support/log-rules.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { removeAll } from '../support/remove-all.ts'

export const MODEL_KEY = 'the-models-own-key-4711'

/** What a test puts in the place of what the bench has. */
export type BenchDeps = Partial<Execution & Workspace> &
  Partial<Pick<ConversationDeps, 'onLogOpened' | 'createRedactor' | 'clientTools'>> & {
    readonly llmDefaults?: ModelAccess['defaults']
  }

/** The bench sets `directory`, where it keeps the logs. */
export type BenchLogs = EventStore & { readonly home?: { directory: string } }

export type BenchOptions = {
  readonly script?: Script
  readonly tools?: readonly Tool[]
  readonly deps?: BenchDeps
  /** Where logs are made and opened, for what is wrong with the disk; they are looked at as ever. */
  readonly logs?: BenchLogs
  /** Changes what else is stored. */
  readonly wrapStorage?: (real: Storage) => Storage
  readonly roots?: readonly string[]
  readonly secretKeys?: readonly [string, ...string[]]
  readonly maxRuns?: number
  /** How callbacks are delivered; receivers are on this machine unless `fetch` says otherwise. */
  readonly callbacks?: Partial<DispatcherOptions>
  readonly git?: Partial<GitAccess>
  /** Conversations at rest are closed when it says so; by default never. */
  readonly manager?: Partial<Pick<ManagerDeps, 'idle' | 'endOrphans' | 'endProcesses' | 'closeTimeoutMs'>>
}

export type Bench = AsyncDisposable & {
  /** The one that runs now: `restart` brings another. */
  readonly manager: ConversationManager
  readonly firehose: Firehose
  /** That of the present server. */
  readonly storage: Storage
  readonly known: KnownConversations
  /** Of the manager that runs now. */
  readonly dispatcher: CallbackDispatcher
  readonly model: ScriptedModel
  readonly catalog: ModelCatalog
  readonly dataDir: string
  readonly workdirBase: string
  /** Lines of the server's log, as JSON. */
  readonly logged: string[]
  readonly metrics: Metrics
  /** Makes a conversation with the scripted model; answers its id. */
  readonly create: (fields?: object) => Promise<string>
  readonly view: (id: string) => Promise<ConversationView>
  readonly configure: (id: string, update: UpdateConfig) => Promise<ConversationView>
  /** Makes a conversation and opens it. */
  readonly converse: (fields?: object) => Promise<Conversation>
  readonly sessionOf: (id: string) => string
  /** Ends the manager (or, with `kill`, just drops it) and starts another on the same data. */
  readonly restart: (how?: {
    kill?: boolean
    between?: () => Promise<void>
    secretKeys?: readonly [string, ...string[]]
  }) => Promise<void>
}

export async function setBench({
  script = () => ({ text: 'Hello.' }),
  tools = [],
  deps = {},
  logs,
  wrapStorage = (real) => real,
  roots = [],
  secretKeys = ['key-material-of-the-tests'],
  maxRuns = 256,
  callbacks = {},
  git = {},
  manager: managerDeps = {},
}: BenchOptions = {}): Promise<Bench> {
  const home = await mkdtemp(join(tmpdir(), 'conversations-'))
  const [dataDir, workdirBase] = [join(home, 'data'), join(home, 'work')]
  await mkdir(dataDir)
  if (logs?.home) logs.home.directory = join(dataDir, 'sessions')
  const model = await startScriptedModel(script)
  const logged: string[] = []
  const metrics = new Metrics()
  const logger = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) })

  const dispatchers: CallbackDispatcher[] = []
  const dropped: ConversationManager[] = []
  const storages: Storage[] = []
  const lives = new Map<ConversationManager, Life>()
  const start = async (keyMaterial: readonly [string, ...string[]]) => {
    const life = { isOver: false }
    const onFault = (error: unknown) => logger.error(error)
    const storage = wrapStorage(await openStorage(dataDir, { logs, life, keyMaterial, onFault }))
    storages.push(storage)
    const unfinished = new UnfinishedFiles(join(dataDir, 'unfinished'))
    await (
      await unfinished.removeLeft(onFault)
    ).removed
    const endOrphans = managerDeps.endOrphans ?? (async () => [])
    const known = new KnownConversations({
      storage,
      workdirBase,
      endOrphans,
      removeLeft: (id) => storage.conversation(id).removeLeft(),
      logger,
    })
    const firehose = new Firehose({
      orders: storage.firehose,
      store: storage,
      heads: () => known.heads(),
      onFault: (error) => logger.error({ err: error }, 'the firehose failed'),
    })
    const resources = await unlimited()
    const fetch = createSafeFetch({ allow: ['127.0.0.1'] })
    const dispatcher = createCallbackDispatcher({ fetch, userAgent: 'test', ...callbacks })
    dispatchers.push(dispatcher)
    const profiles = new Profiles({ table: storage.profiles, keys: storage.keys.material })
    const manager = new ConversationManager({
      withProfile: (request) => profiles.applyTo(request),
      conversations: {
        storage,
        server: { version: '0.0.0-test', isolation: 'none' },
        models: {
          catalog,
          defaults: deps.llmDefaults ?? {},
          endpointRefusal: async () => undefined,
          createLlm: ({ config, redact, dialects }) =>
            new HttpLlm({ config, redact, dialects, catalog, retryBaseMs: 1 }),
        },
        hooks: { fetch, userAgent: 'test' },
        workspace: {
          workdirRules: { base: workdirBase, roots, forbidden: [dataDir], unholdable: [] },
          files: {
            io: new Queue({ limit: 8 }),
            ripgrep: () => undefined,
            unfinished,
            git: { launcher: hostLauncher, program: findGit, ...git },
          },
          fileRules: () => ({ forbidden: [dataDir], permitted: [workdirBase] }),
          homesOf: () => ['/home/user'],
          userSettings: undefined,
          ...deps,
        },
        exec: {
          createShells: () => {
            throw new Error('these tests have no shell')
          },
          createTools: (names) => (names.length ? [...tools] : []),
          ...deps,
        },
        limits: {
          check: (requested) => resources.check(requested),
          inForce: (requested) => resources.inForce(requested),
          limit: ({ directory, ...options }) =>
            resources.limit({ ...options, stateDir: join(directory, 'shells'), roots: options.directories }),
        },
        network: OPEN_NETWORK,
        mcp: {
          fetch: globalThis.fetch,
          keptBytes: 30_000,
          outputsOf: (directory) => join(directory, 'outputs'),
          pending: new PendingAuthorizations(),
          redirectUrl: () => 'http://127.0.0.1/mcp/oauth/callback',
        },
        ...(deps.clientTools && { clientTools: deps.clientTools }),
        dispatcher,
        slots: new Queue({ limit: maxRuns }),
        metrics,
        logger,
        createRedactor: deps.createRedactor ?? (() => createRedactor()),
        onLogOpened:
          deps.onLogOpened ??
          ((log) => {
            known.attach(log)
            firehose.attach(log)
          }),
      },
      knownConversations: known,
      endProcesses: async () => [],
      ...managerDeps,
      endOrphans,
      onDeleted: (owner) => firehose.announceDeleted(owner),
    })
    lives.set(manager, life)
    await manager.start()
    await manager.resumeDeliveries()
    return { manager, firehose, storage, known }
  }

  let { manager, firehose, storage, known } = await start(secretKeys)
  const create: Bench['create'] = async (fields = {}) => {
    const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: MODEL_KEY, num_retries: 0 }
    return (await manager.create(CreateConversation.parse({ llm_config, ...fields }))).id
  }
  return {
    get manager() {
      return manager
    },
    get firehose() {
      return firehose
    },
    get storage() {
      return storage
    },
    get known() {
      return known
    },
    get dispatcher() {
      return dispatchers.at(-1)!
    },
    model,
    catalog,
    dataDir,
    workdirBase,
    logged,
    metrics,
    create,
    view: async (id) => (await manager.open(id)).view(),
    configure: async (id, update) => await (await manager.open(id)).configure(update),
    converse: async (fields) => await manager.open(await create(fields)),
    sessionOf: (id) => join(dataDir, 'sessions', id),
    async restart({ kill = false, between, secretKeys: keys = secretKeys } = {}) {
      if (kill) {
        dropped.push(manager)
        lives.get(manager)!.isOver = true
      } else {
        await manager.close()
        await firehose.close()
      }
      await between?.()
      ;({ manager, firehose, storage, known } = await start(keys))
    },
    async [Symbol.asyncDispose]() {
      await model.close()
      for (const each of [manager, ...dropped]) await each.close()
      for (const each of dispatchers) await each.close()
      await firehose.close()
      for (const each of storages) await each[Symbol.asyncDispose]()
      try {
        await expectRulesOnDisk(dataDir)
      } finally {
        await removeAll(home)
      }
    },
  }
}

/** All benches of a process share one: nothing changes it, and to read it takes longer than most of what they do with it. */
const catalog = new ModelCatalog({ readBundled: () => readAsset(MODEL_CATALOG).toString() })

let limiter: Promise<ResourceLimiter> | undefined

/** All benches of a process share one: to detect what can be limited starts a process, and these tests limit nothing. */
const unlimited = () => (limiter ??= detectLimits())

async function detectLimits(): Promise<ResourceLimiter> {
  const dataDir = await mkdtemp(join(tmpdir(), 'limits-'))
  try {
    return await createResourceLimiter({ limits: {}, dataDir, onError: (error) => process.emitWarning(String(error)) })
  } finally {
    // It holds the record of earlier groups only, and there are none.
    await rm(dataDir, { recursive: true })
  }
}

type Life = { isOver: boolean }

type StorageOptions = {
  /** Where logs are made and opened; they are looked at as ever. */
  readonly logs?: EventStore | undefined
  /** A server that was killed opens nothing any more, whatever its code still tries. */
  readonly life?: Life
  readonly keyMaterial?: readonly [string, ...string[]]
  readonly onFault?: (error: unknown) => void
}

/** As a server finds it, but not locked: a server that is killed here lives on, and others may look at its data. */
export async function openStorage(
  directory: string,
  { logs, life, keyMaterial = ['key-material-of-the-tests'], onFault = () => {} }: StorageOptions = {},
): Promise<Storage> {
  const real = createJsonlStore({ directory: join(directory, 'sessions') })
  const store = logs ?? real
  return await FileStorage.openUnlocked({
    directory,
    keys: { material: keyMaterial, locked: 0 },
    onFault,
    // Looks at each method when it is called: a test may change it.
    logs: {
      create: (...args) => store.create(...args),
      copy: (...args) => store.copy(...args),
      open: async (id) => {
        if (life?.isOver) throw new Problem('unavailable', 'The server is dead.')
        return await store.open(id)
      },
      delete: (id) => store.delete(id),
      view: (id) => real.view(id),
    },
  })
}

/** No conversation here has a proxy, unless its test is about that. */
const OPEN_NETWORK: ConversationDeps['network'] = {
  server: { default: { mode: 'open' }, ceiling: { mode: 'open' }, modes: ['none', 'allowlist', 'open'] },
  reach: createOutboundConnector({ privateRules: [] }),
  createPermits: createConnectionPermits(),
  onOutcome: () => {},
}

/** For `deps`, where a test is about shells. */
export function realShells(launcher: ShellLauncher = hostLauncher): Execution['createShells'] {
  return ({ directory, limits, ...options }) =>
    limits.limitShells(
      new BashShells({
        ...options,
        stateDir: join(directory, 'shells'),
        outputDir: join(directory, 'outputs'),
        privateDir: join(directory, 'private'),
        env: HostEnvironment.from(process.env),
        launcher: limits.limitLauncher(launcher),
      }),
    )
}

/** Every event there is, from the first. */
export async function eventsOf({ log }: { log: EventLog }): Promise<Event[]> {
  return (await readAll(log)).map((stored) => stored.event)
}

export function only<T extends EventType>(events: readonly Event[], type: T): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

/** Resolves to the first event, stored already or to come, that fits. */
export async function until<T extends EventType>(
  conversation: Conversation,
  type: T,
  fits: (event: EventOf<T>) => boolean = () => true,
): Promise<EventOf<T>> {
  const { promise, resolve, reject } = Promise.withResolvers<EventOf<T>>()
  const look = (events: readonly Event[]) => only(events, type).filter(fits).forEach(resolve)
  const stop = conversation.log.subscribe({
    onEvents: (events) => look(events.map((stored) => stored.event)),
    onClose: () => reject(new Error(`the log closed before such a ${type} came`)),
  })
  look(await eventsOf(conversation))
  try {
    return await promise
  } finally {
    stop()
  }
}

/** Posts a message that asks for a run, and waits until that run is over. */
export async function say(conversation: Conversation, text = 'go'): Promise<EventOf<'Result'>> {
  const { run_id } = await conversation.post({ message: { role: 'user', content: text }, run: true })
  return await endOf(conversation, run_id!)
}

/** Throws, with the last events, if the run goes on for too long. */
export async function endOf(conversation: Conversation, runId: string): Promise<EventOf<'Result'>> {
  const { status, result } = await conversation.waitForRun(runId, PATIENCE_S, new AbortController().signal)
  if (!result && status === 'running' && conversation.state.run?.id === runId) {
    const last = (await eventsOf(conversation))
      .slice(-10)
      .map(({ seq, type, timestamp }) => `${timestamp} ${seq} ${type}`)
    const resources = process.getActiveResourcesInfo().join(' ')
    throw new Error(`the run does not end; its last events: ${last.join(', ')}; what is awaited: ${resources}`)
  }
  return result!
}

export function userText(text: string, run = false) {
  return { message: { role: 'user' as const, content: text }, run }
}

type Run = (input: Record<string, unknown>, context: ToolContext) => Promise<ToolOutcome> | ToolOutcome

/** A tool that takes anything and does what it is given to do. */
export function tool(name: string, run: Run, more: Partial<Tool<Record<string, unknown>>> = {}): Tool {
  return {
    name,
    description: `The ${name} of the tests.`,
    input: z.looseObject({}),
    run: async (input: Record<string, unknown>, context) => await run(input, context),
    ...more,
  }
}

export const call = (name: string, args: Record<string, unknown> | string = {}) => ({ name, arguments: args })

export type Gate = {
  readonly tool: Tool
  /** How often it was called. */
  readonly calls: () => number
  /** Resolves when a call is inside. */
  readonly entered: Promise<void>
  /** Lets what is inside, and all that come later, out. */
  readonly open: (output?: string) => void
}

/** A tool that does not answer until it is let, or ended by its signal. */
export function gate(name = 'Gate', { stubborn = false } = {}): Gate {
  const entered = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<string>()
  let calls = 0
  const run: Run = async (_, { signal }) => {
    calls++
    entered.resolve()
    const ended = new Promise<'ended'>((resolve) =>
      signal.addEventListener('abort', () => resolve('ended'), { once: true }),
    )
    const output = await (stubborn ? opened.promise : Promise.race([opened.promise, ended]))
    return output === 'ended'
      ? { output: 'ended', error: { type: 'interrupted', message: 'It was ended.' } }
      : { output }
  }
  return {
    tool: tool(name, run),
    calls: () => calls,
    entered: entered.promise,
    open: (output = 'through') => opened.resolve(output),
  }
}

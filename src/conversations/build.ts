/** Builds an open conversation from its log, creating the parts in the order of their dependencies. */
import { EventLog } from '../events/event-log.ts'
import type { StoredLog } from '../events/event-store.ts'
import type { ConversationLimits } from '../limits/conversation-limits.ts'
import { refusalOfCommand } from '../policy/client-commands.ts'
import { PermissionGate } from '../policy/permissions.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { ConversationStorage } from '../storage/storage.ts'
import type { Logger } from '../telemetry/logger.ts'
import { withRedaction } from '../telemetry/logger.ts'
import type { ActorDeps } from './actor.ts'
import { ConversationActor } from './actor.ts'
import { buildFiles } from './build-files.ts'
import { buildToolCalls, ofCalls } from './agents/build-tool-calls.ts'
import { CallResults } from './live/call-results.ts'
import { ConversationTools } from './changing-tools.ts'
import { ClientEvents } from './client-events.ts'
import { ClientHooks } from './client-hooks/client-hooks.ts'
import { WaitingHooks } from './client-hooks/waiting-hooks.ts'
import { EndingRequests } from './live/ending-requests.ts'
import { forgetEdits } from '../tools/editor/edit-history.ts'
import { HandedOverCalls } from './client-tools/handed-over-calls.ts'
import { DeclaredTools } from './client-tools/declared-tools.ts'
import { ClientSecrets } from './config/client-secrets.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import { Conversation } from './conversation.ts'
import type { ConversationDeps } from './dependencies.ts'
import { ClientCommands } from '../workspace/exec/client-commands.ts'
import { DEFAULT_COMMAND_LIMITS } from '../workspace/exec/command-limits.ts'
import { CommandRecords } from '../workspace/exec/command-records.ts'
import { ConversationProcesses } from '../workspace/exec/conversation-processes.ts'
import { requireWorkdir } from '../workspace/workdirs/missing-workdir.ts'
import { ConversationShells } from '../workspace/exec/conversation-shells.ts'
import { logEvents } from './log-events.ts'
import { buildMcp } from './mcp.ts'
import { ConversationNetwork } from '../workspace/network.ts'
import type { ConversationProjectDeps } from './project/conversation-project.ts'
import { ConversationProject } from './project/conversation-project.ts'
import { PostedCommands } from './project/posted-commands.ts'
import { Compactions } from './runs/compactions.ts'
import { createLlmFactory, createTitleLlmFactory } from './runs/llm-factory.ts'
import { runSnapshotsOf } from './runs/run-snapshots.ts'
import { MetricsRecorder } from './runs/metrics-recorder.ts'
import { Titles } from './runs/titles.ts'
import { buildRequests } from './requests/build-requests.ts'
import { HeldRequests } from './requests/held-requests.ts'
import { LiveState } from './live/live-state.ts'
import { ListedConversationState } from './registry/summary-rows.ts'
import { ConversationRules } from './config/permission-rules.ts'
import type { State } from '../state/state.ts'
import { rulesOf } from '../state/state.ts'
import type { SharedParts } from './subagents/build-subagent.ts'
import { UsedSubagents, usedHooks } from './used-features.ts'
import { buildSubagents } from './subagents/build-subagents.ts'
import { createRunTaskCommand } from './tasks/task-command-runner.ts'
import type { CallbackFile } from '../webhooks/callback-record.ts'
import { CallbackSet } from '../webhooks/callback-set.ts'
import { DirtyFlag } from '../webhooks/dirty-flag.ts'
import { Webhooks } from '../webhooks/webhooks.ts'

export type ConversationSource = {
  readonly stored: StoredLog
  /** The state folded from the whole log. */
  readonly state: State
  readonly secrets: ConversationSecrets
  readonly callbacks: CallbackFile
  readonly redactor: Redactor
  /** Called after each change that lists show. */
  readonly onChange: (state: State) => void
}

export function buildConversation(deps: ConversationDeps, source: ConversationSource): Conversation {
  const { secrets, redactor, onChange } = source
  const { redact } = redactor
  const base = buildBase(deps, source)
  const { id, log, state, logger, workdir, additionalDirectories } = base
  const homes = deps.workspace.homesOf(base.directory)
  const gate = new PermissionGate({ workdir, additionalDirectories, homes, ...ofCalls(() => toolCalls) })
  const execution = buildExecution(deps, base, source, gate)
  const project = buildProject(deps, base, gate, { ...execution, hooks: () => hooks.current?.tools })
  const hooks = usedHooks(deps.hooks, {
    ...base,
    secrets,
    redact,
    isolation: deps.server.isolation,
    shells: execution.shells,
    toolCalls: () => toolCalls,
    onFault: (error) => logger.error({ err: error, conversation_id: id }, 'a hook could not be called'),
  })
  const mcp = buildMcp(deps, { ...base, ...execution, secrets, redactor })
  const ending = new EndingRequests(base)
  const handedOver = new HandedOverCalls({ ...base, ending, ...deps.clientTools })
  const heldRequests = new HeldRequests({ ...base, rests: () => agents.subagents.rests })
  const changing = new ConversationTools(state, { mcp, declared: new DeclaredTools(state, handedOver) })
  const parts = { ...base, ...execution, redactor, project, changing, hooks, homes, heldRequests, ending }
  const agents = buildAgents(deps, parts, { secrets, actor: () => actor })
  const { toolCalls, createLlm, catalog } = agents
  const files = buildFiles(deps, { ...base, redact, hooks })
  const actor: ConversationActor = new ConversationActor({
    ...agents,
    log,
    state,
    slots: deps.slots,
    leaving: deps.leaving,
    requireWorkdir: deps.storage.shared && (() => requireWorkdir(workdir())),
    snapshots: runSnapshotsOf(() => ({ ...deps, ...base, gate, toolCalls, snapshots: () => files.snapshots })),
    gate,
    hooks,
    redact,
    runTaskCommand: createRunTaskCommand(execution.commands),
    runningShells: execution.runningShells,
    logger,
    markActive: (isActive) => (isActive ? deps.storage.active.set(id) : deps.storage.active.clear(id)),
    onChange,
  })
  // Subscribe after the conversation itself, so that it already knows the events that others receive.
  deps.onLogOpened(log)
  if (state.current.settings.visualize) logEvents(log, logger)
  const own = { log, state, redact, actor }
  return new Conversation(
    deps,
    {
      log,
      files,
      exec: execution,
      webhooks: new Webhooks({ conversationId: id, set: base.deliveries, log, dispatcher: deps.dispatcher, redact }),
      ...buildRequests({ ...own, ...base, ...execution, toolCalls, ending, heldRequests }),
      clientHooks: new ClientHooks({ ...own, waiting: base.waitingHooks }),
      secrets: new ClientSecrets(secrets, actor),
      rules: new ConversationRules(own),
      mcp,
      clientEvents: new ClientEvents(own),
      compactions: new Compactions({ ...own, toolCalls, createLlm, catalog, hooks }),
    },
    {
      actor,
      state,
      toolCalls,
      hooks,
      secrets,
      network: execution.network,
      shells: execution.shells,
      handedOver,
      postedCommands: new PostedCommands({ project, state, gate, redact: redactor.redactInSlices }),
      deliveries: base.deliveries,
      redactor,
      titles: new Titles({ ...own, logger, createLlm: createTitleLlmFactory(deps, { id, secrets, redactor }) }),
      forgetEdits: () => forgetEdits(base.directory),
    },
  )
}

/** What all other parts need. */
type Base = {
  readonly id: string
  readonly own: ConversationStorage
  /** The server's own directory for this conversation. */
  readonly directory: string
  readonly logger: Logger
  readonly log: EventLog
  readonly state: LiveState
  readonly deliveries: CallbackSet
  readonly waitingHooks: WaitingHooks
  readonly limits: ConversationLimits
  readonly workdir: () => string
  readonly additionalDirectories: () => readonly string[]
}

function buildBase(deps: ConversationDeps, { stored, redactor, callbacks, ...source }: ConversationSource): Base {
  const id = stored.conversationId
  const { storage, dispatcher } = deps
  const own = storage.conversation(id)
  const { directory, sealer, callbacks: document } = own
  const logger = withRedaction(deps.logger, redactor.redact)
  const flag = new DirtyFlag({ set: () => storage.due.set(id), clear: () => storage.due.clear(id) })
  const log = new EventLog({
    log: stored,
    onListenerError: (error) => logger.error({ err: error, conversation_id: id }, 'a reader failed'),
    onAppended: deps.metrics.appended,
  })
  const state = new LiveState(source.state, log)
  stored.listWith?.(new ListedConversationState(source.state))
  const deliveries = new CallbackSet({ document, log, mark: flag, dispatcher, redactor, sealer, logger }, callbacks)
  const waitingHooks = new WaitingHooks(id)
  const workdir = () => state.current.settings.workdir
  const additionalDirectories = () => state.current.settings.additional_directories ?? []
  const limits = deps.limits.limit({
    conversationId: id,
    requested: state.current.settings.limits,
    directories: () => [workdir(), ...additionalDirectories()],
    directory,
    commandOutputs: own.commands.directory,
  })
  const places = { directory, workdir, additionalDirectories }
  return { id, own, ...places, logger, log, state, deliveries, waitingHooks, limits }
}

type BuiltExecution = {
  readonly network: ConversationNetwork
  readonly shells: ConversationShells
  readonly commands: ClientCommands
  readonly processes: ConversationProcesses
  readonly runningShells: ActorDeps['runningShells']
}

/** Builds the shells, their network, and the commands that clients run in them. */
function buildExecution(
  deps: ConversationDeps,
  { id, own, directory, logger, log, state, limits, workdir, additionalDirectories }: Base,
  { secrets, redactor }: ConversationSource,
  gate: PermissionGate,
): BuiltExecution {
  const { redact, redactAnyCase, redactCutOff, redactInSlices } = redactor
  const network = new ConversationNetwork({
    ...deps.network,
    policy: () => state.current.settings.network,
    runId: () => state.current.run?.id,
    emit: async (drafts) => void (await log.append([...drafts])),
    redact: redactAnyCase,
    onFault: (error) => logger.error({ err: error, conversation_id: id }, 'a network event could not be stored'),
  })
  const shells = new ConversationShells(() =>
    deps.exec.createShells({
      conversationId: id,
      workdir: workdir(),
      additionalDirectories: additionalDirectories(),
      directory,
      network: () => ({ mode: network.mode, adopt: (listener) => network.adopt(listener) }),
      secretsEnv: () => ({ ...state.current.settings.env, ...secrets.commandEnv() }),
      createFilter: redactor.byteStream,
      limits,
    }),
  )
  const commandLimits = { ...DEFAULT_COMMAND_LIMITS, ...deps.exec.commandLimits }
  const commands = new ClientCommands({
    conversationId: id,
    shells: () => shells.current(),
    isAgentIn: (sessionId) => shells.isAgentIn(sessionId),
    refusal: (command, sessionId) =>
      refusalOfCommand(gate, rulesOf(state.current), {
        command,
        ...shells.current().standOf(sessionId),
      }),
    records: new CommandRecords(own.commands, commandLimits),
    redact,
    redactInSlices,
    emit: async (draft) => void (await log.append([draft])),
    publish: (draft) => log.publish(draft),
    logger,
    limits: commandLimits,
  })
  const processes = new ConversationProcesses({
    find: () => shells.current().processes(),
    ownerOf: (process) => commands.ownerOf(process),
    redact,
    redactCutOff,
  })
  const runningShells = async () => {
    const running = await shells.running()
    return { sessions: running.sessions, commandLines: processes.commandLines(running.processes) }
  }
  return { network, shells, commands, processes, runningShells }
}

type AgentOptions = { readonly secrets: ConversationSecrets; readonly actor: () => ConversationActor }

/** Builds what the main agent and its subagents work with. */
function buildAgents(
  deps: ConversationDeps,
  parts: Omit<SharedParts, 'withoutTools' | 'createLlm' | 'catalog' | 'results'>,
  { secrets, actor }: AgentOptions,
) {
  const { id, log, state, redactor, hooks, shells } = parts
  const recorder = new MetricsRecorder(deps.metrics, log, state.current)
  const model = { models: deps.models, conversationId: id, secrets, redactor }
  const withoutTools = new Set<string>()
  const { catalog } = deps.models
  const createLlm = createLlmFactory({ ...model, recorder })
  const createSubagentLlm = createLlmFactory({ ...model, recorder: { time: (llm) => recorder.timeSubagent(llm) } })
  const results = new CallResults(state)
  const sharedParts = { ...parts, results, withoutTools, catalog, createLlm: createSubagentLlm }
  const onWork = () => subagents.rests.check()
  const subagents: UsedSubagents = new UsedSubagents(state, () =>
    buildSubagents(deps, sharedParts, { actor, main: () => ({ hooks, toolCalls }), onWork }),
  )
  const own = { hooks: () => hooks.current?.tools, shells: shells.ofAgent(), subagents: subagents.access }
  const toolCalls = buildToolCalls(deps, { ...parts, results, ...own, rules: () => [rulesOf(state.current)] })
  return { createLlm, catalog, withoutTools, subagents, toolCalls, results }
}

function buildProject(
  { workspace }: ConversationDeps,
  { directory: stateDirectory, state, workdir, additionalDirectories }: Base,
  gate: PermissionGate,
  parts: Pick<ConversationProjectDeps, 'shells' | 'hooks'>,
): ConversationProject {
  const forbidden = () => workspace.fileRules({ stateDirectory, workdir, additionalDirectories }).forbidden
  return new ConversationProject({ ...parts, state, gate, workdir, userSettings: workspace.userSettings, forbidden })
}

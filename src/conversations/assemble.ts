/** One conversation from its parts: actor, log, tools, shells and secrets tied together, and how they are taken apart again. */
import { join } from 'node:path'
import type { AgentInfo } from '../contract/agent-info.ts'
import type { Sandbox } from '../contract/sandbox.ts'
import type { LlmConfig } from '../contract/llm-config.ts'
import { createRedactedLlm } from '../agent/redacted-llm.ts'
import { adviceFor } from '../agent/repeats.ts'
import { createToolCalls } from '../agent/tool-calls.ts'
import type { LogEnd } from '../events/event-log.ts'
import { EventLog } from '../events/event-log.ts'
import type { EventStore, StoredLog } from '../events/event-store.ts'
import type { Llm } from '../llm/llm.ts'
import type { Dialects } from '../llm/openai-chat.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { SecretStore } from '../security/secret-store.ts'
import type { Logger } from '../telemetry/logger.ts'
import { withRedaction } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ToolDeps } from '../tools/registry.ts'
import type { Tool } from '../tools/tool.ts'
import type { FileRules } from '../files/file-gate.ts'
import type { ConversationLimits } from '../limits/conversation-limits.ts'
import type { DiskQuota } from '../limits/disk-quota.ts'
import type { ResourceLimiter } from '../limits/resource-limits.ts'
import type { ShellNetwork } from '../sandbox/launch.ts'
import type { OutputFilter, Shells } from '../shell/shell.ts'
import type { CallbackFile } from './webhooks/callback-record.ts'
import { CallbackSet } from './webhooks/callback-set.ts'
import type { CallbackCommands } from './webhooks/callbacks.ts'
import { callbackCommands } from './webhooks/callbacks.ts'
import type { CallbackDispatcher } from './webhooks/dispatcher.ts'
import { createDueMark } from './webhooks/due-mark.ts'
import type { Catalog } from './registry/catalog.ts'
import type { ClientCommands, CommandLimits } from './exec/client-commands.ts'
import { createClientCommands, DEFAULT_COMMAND_LIMITS } from './exec/client-commands.ts'
import { createCommandRecords } from './exec/command-records.ts'
import type { ConversationProcesses } from './exec/conversation-processes.ts'
import { createConversationProcesses } from './exec/conversation-processes.ts'
import type { ConversationShells } from './exec/conversation-shells.ts'
import { createConversationShells } from './exec/conversation-shells.ts'
import { tellAgent } from './config/agent-info.ts'
import { Conversation } from './conversation.ts'
import { describeEvent } from '../contract/events/describe-event.ts'
import type { ConversationFiles, FilesDeps } from './files/files.ts'
import { createConversationFiles } from './files/files.ts'
import type { ConversationSecrets, SecretCommands } from './config/secrets.ts'
import { secretCommands } from './config/secrets.ts'
import type { LlmDefaults } from './config/settings.ts'
import { originOf } from './config/llm-origin.ts'
import { withLlmSecrets } from './config/settings.ts'
import { createRunTaskCommand } from './tasks/run-task-command.ts'
import { createMeter } from './runs/meter.ts'
import type { NetworkDeps } from './network.ts'
import { ConversationNetwork } from './network.ts'
import type { Queue } from '../lib/queue.ts'
import type { State } from './state/state.ts'
import type { WorkdirRules } from './workdirs/workdir.ts'
import { whyClosed } from './why-closed.ts'

export type AssemblyDeps = {
  readonly store: EventStore
  readonly catalog: Catalog
  readonly secretStore: SecretStore
  readonly dispatcher: CallbackDispatcher
  readonly workdirRules: WorkdirRules
  readonly llmDefaults: LlmDefaults
  /** Why the operator lets no model request go there, as a clause. */
  readonly endpointRefusal: (url: string) => Promise<string | undefined>
  readonly version: string
  readonly isolation: 'bubblewrap' | 'none'
  readonly resources: Pick<ResourceLimiter, 'check' | 'inForce'>
  readonly limitConversation: (options: {
    conversationId: string
    requested: State['settings']['limits']
    workdir: () => string
    directory: string
  }) => ConversationLimits
  readonly network: NetworkDeps
  readonly sandbox?: Sandbox | undefined
  readonly slots: Queue
  readonly metrics: Metrics
  readonly logger: Logger
  /** A redactor that knows the server's own secrets already. */
  readonly createRedactor: () => Redactor
  readonly createLlm: (
    options: Pick<Redactor, 'redact' | 'redactCutOff'> & {
      config: LlmConfig
      /** What this conversation has learnt of its endpoints. */
      dialects: Dialects
      conversationId: string
    },
  ) => Llm
  readonly createShells: (options: {
    conversationId: string
    workdir: string
    directory: string
    network: () => ShellNetwork
    secretsEnv: () => Record<string, string>
    createFilter: () => OutputFilter
    limits: ConversationLimits
  }) => Shells
  /** What of a conversation's files is the same for all. */
  readonly files: Pick<FilesDeps, 'io' | 'ripgrep'>
  /** Where its files may be seen and changed, by its tools and by clients. */
  readonly fileRules: (conversation: { stateDirectory: string; workdir: () => string }) => FileRules
  /** Of the commands that clients run; what is absent is as by default. */
  readonly commandLimits?: Partial<CommandLimits>
  readonly createTools: (names: readonly string[], deps: ConversationToolDeps) => Tool[]
  /** Told of each log that is opened or made, before anything is appended to it. */
  readonly onLogOpened: (log: EventLog) => void
}

/** What tools get that differs from conversation to conversation. */
export type ConversationToolDeps = Omit<ToolDeps, 'files'> & {
  /** The one that holds now. */
  readonly workdir: () => string
  readonly quota: DiskQuota | undefined
}

/** An assembled conversation and what only its assembler may touch. */
export type Opened = {
  readonly conversation: Conversation
  readonly files: ConversationFiles
  readonly redact: (text: string) => string
  readonly secrets: SecretCommands
  readonly credentials: ConversationSecrets
  readonly shells: Pick<ConversationShells, 'list' | 'end'>
  /** What its commands may reach. */
  readonly network: ConversationNetwork
  /** Those that clients run, beside the agent. */
  readonly commands: ClientCommands
  readonly processes: ConversationProcesses
  readonly agentInfo: () => Promise<AgentInfo>
  readonly callbacks: CallbackCommands
  /** Who delivers, beside those who ask for it. */
  readonly deliveries: Pick<CallbackSet, 'start' | 'settle'>
  /** Ends the shells, so that the next command starts in the workdir, and in the network, that hold then. */
  readonly endShells: () => Promise<void>
  /** Whether closing it would end or lose nothing: no run, command, process, question or due delivery. */
  readonly isAtRest: () => Promise<boolean>
  /** Takes it apart, with everything it started. */
  readonly dispose: (outcome: LogEnd) => Promise<void>
}

type OnChange = (state: State) => void

export type Parts = {
  readonly stored: StoredLog
  readonly state: State
  readonly secrets: ConversationSecrets
  readonly callbacks: CallbackFile
  readonly redactor: Redactor
  readonly onChange: OnChange
}

export function assemble(deps: AssemblyDeps, parts: Parts): Opened {
  const { stored, state, secrets, redactor, onChange } = parts
  const id = stored.conversationId
  const { catalog } = deps
  const { redact } = redactor
  const logger = withRedaction(deps.logger, redact)

  const mark = createDueMark({ set: () => catalog.markDue(id), clear: () => catalog.unmarkDue(id) })
  const log: EventLog = new EventLog({
    log: stored,
    onListenerError: (error) => logger.error({ err: error, conversation_id: id }, 'a reader failed'),
    onAppended: deps.metrics.appended,
    guard: (append) => mark.during(append, callbackSet.hasEnabled),
  })
  const callbackSet: CallbackSet = new CallbackSet(
    {
      directory: catalog.directoryOf(id),
      log,
      mark,
      dispatcher: deps.dispatcher,
      redactor,
      sealer: deps.secretStore.sealerFor(id),
      logger,
    },
    parts.callbacks,
  )
  const meter = createMeter(deps.metrics, state)
  const workdir = () => conversation.state.settings.workdir
  const directory = catalog.directoryOf(id)
  const requested = state.settings.limits
  const resources = deps.limitConversation({ conversationId: id, requested, workdir, directory })
  const shells = createConversationShells(() =>
    deps.createShells({
      conversationId: id,
      workdir: workdir(),
      directory,
      network: () => ({ mode: network.mode, adopt: (listener) => network.adopt(listener) }),
      secretsEnv: secrets.commandEnv,
      createFilter: redactor.byteStream,
      limits: resources,
    }),
  )
  const network = new ConversationNetwork({
    ...deps.network,
    policy: () => conversation.state.settings.network,
    runId: () => conversation.state.run?.id,
    emit: async (drafts) => void (await log.append([...drafts])),
    configure: (change) =>
      conversation.configure(async ({ settings }) => ({ changes: { network: change(settings.network) } })),
    onFault: (error) =>
      logger.error({ err: error, conversation_id: id }, 'an event of the network could not be stored'),
  })
  const limits = { ...DEFAULT_COMMAND_LIMITS, ...deps.commandLimits }
  const commands = createClientCommands({
    conversationId: id,
    shells: shells.current,
    isAgentIn: shells.isAgentIn,
    records: createCommandRecords(join(directory, 'commands'), limits),
    redact,
    emit: async (draft) => void (await log.append([draft])),
    publish: (draft) => log.publish(draft),
    logger,
    limits,
  })
  const processes = createConversationProcesses({
    find: () => shells.current().processes(),
    ownerOf: commands.ownerOf,
    redact,
    redactCutOff: redactor.redactCutOff,
  })

  const toolCalls = createToolCalls({
    tools: deps.createTools(state.settings.tools, {
      shells: shells.forAgent,
      stateDirectory: directory,
      workdir,
      quota: resources.quota,
      lastOutput: (name) => conversation.state.lastOutputs[name],
      sealer: deps.secretStore.sealerFor(id),
      redact: redactor.redactInSlices,
    }),
    context: () => ({ conversationId: id, workdir: workdir() }),
    redactor,
    emit: async (drafts) => void (await log.append(drafts)),
    adviceFor: (result) => adviceFor(conversation.state.repeats, result, conversation.state.openCalls),
    onOutput: (tool_use_id, stream, text, offset) =>
      log.publish({ type: 'ToolOutputDelta', tool_use_id, stream, offset, text }),
    onCrash: (error, call) => logger.error({ err: error, conversation_id: id, tool: call.name }, 'a tool threw'),
  })
  const dialects: Dialects = new Map()
  const conversation: Conversation = new Conversation({
    log,
    state,
    slots: deps.slots,
    toolCalls,
    redact,
    redactInSlices: redactor.redactInSlices,
    createLlm: (stored) => {
      const config = withLlmSecrets(stored, secrets.llmFor(originOf(stored)), deps.llmDefaults)
      const llm = deps.createLlm({ ...redactor, config, dialects, conversationId: id })
      return createRedactedLlm(meter.time(llm), redactor)
    },
    runTaskCommand: createRunTaskCommand(commands),
    logger,
    markActive: (active) => (active ? catalog.markActive(id) : catalog.unmarkActive(id)),
    onChange,
  })
  const stateDirectory = catalog.directoryOf(id)
  const files = createConversationFiles({
    ...deps.files,
    log,
    workdir,
    rules: () => deps.fileRules({ stateDirectory, workdir }),
    directory: stateDirectory,
    quota: resources.quota,
    redact,
  })
  log.subscribe({ onEvents: (events) => events.forEach(({ event }) => meter.take(event)) })
  // After the conversation itself: what others are told it knows already.
  deps.onLogOpened(log)
  if (state.settings.visualize)
    log.subscribe({
      onEvents: (events) => events.forEach(({ event }) => logger.info({ conversation_id: id }, describeEvent(event))),
    })

  return {
    conversation,
    files,
    redact,
    secrets: secretCommands({ changeSecrets: (store) => conversation.changeSecrets(store) }, secrets),
    credentials: secrets,
    shells,
    network,
    commands,
    processes,
    agentInfo: () => {
      const { log, state } = conversation
      const { isolation } = deps
      const resourceLimits = deps.resources.inForce(requested)
      const parts = { log, tools: toolCalls.descriptions, isolation, network: network.shown, resourceLimits }
      return tellAgent({ settings: state.settings, ...parts })
    },
    callbacks: callbackCommands({ conversationId: id, set: callbackSet, head: () => log.head, ...deps, redact }),
    deliveries: callbackSet,
    endShells: shells.close,
    async isAtRest() {
      const waits = network.pending().items.length > 0 || callbackSet.hasDue
      return conversation.isAtRest && commands.isIdle && !waits && !(await shells.areRunning())
    },
    async dispose(outcome) {
      conversation.halt()
      try {
        network.close()
        // Of what is deleted nothing has to end in good order, and no command may hold the delete up.
        if (outcome === 'deleted') await shells.close()
        // First of all, as the log is to tell how they ended.
        await commands.close()
        // What is being sent would else hold up the end of the log.
        await callbackSet.close(outcome)
        await files.close(whyClosed(outcome))
        await conversation.close(outcome)
      } finally {
        await shells.close()
      }
    },
  }
}

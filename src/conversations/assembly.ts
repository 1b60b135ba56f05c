/** Puts a conversation together from its parts: log, secrets, workdir, shells, tools and actor. Knows how, not when. */
import { mkdir, rm } from 'node:fs/promises'
import type { CreateConversation, UpdateConfig } from '../contract/conversation.ts'
import type { EventDraft } from '../contract/event.ts'
import type { LlmConfig } from '../contract/llm-config.ts'
import { partsOf } from '../contract/message.ts'
import { Problem } from '../contract/problem.ts'
import { buildSystemPrompt } from '../agent/prompt.ts'
import { createToolCalls } from '../agent/tool-calls.ts'
import type { LogEnd } from '../events/event-log.ts'
import { createEventLog } from '../events/event-log.ts'
import type { EventStore, StoredLog } from '../events/event-store.ts'
import type { Llm } from '../llm/llm.ts'
import { seemsToLackTools } from '../llm/models.ts'
import type { Redactor } from '../security/redactor.ts'
import type { SecretStore, SecretValues } from '../security/secret-store.ts'
import type { Logger } from '../telemetry/logger.ts'
import { DEFAULT_TOOLS, resolveToolNames } from '../tools/registry.ts'
import type { ToolDeps } from '../tools/registry.ts'
import type { Tool } from '../tools/tool.ts'
import type { Shells } from '../workspace/shell.ts'
import type { Catalog } from './catalog.ts'
import { Conversation } from './conversation.ts'
import { redactParts } from './redact-parts.ts'
import { describeEvent } from '../contract/describe-event.ts'
import type { LlmDefaults } from './settings.ts'
import {
  changesOf,
  keptHeaders,
  llmSecrets,
  mergeLlmSecrets,
  newSettings,
  parseLlmUpdate,
  parseNewLlm,
  withLlmSecrets,
} from './settings.ts'
import type { Idempotency } from './idempotency.ts'
import type { Settings, State } from './state.ts'
import { EMPTY_STATE, fold } from './state.ts'
import type { WorkdirRules } from './workdir.ts'
import { prepareWorkdir } from './workdir.ts'

export type AssemblyDeps = {
  readonly store: EventStore
  readonly catalog: Catalog
  readonly secretStore: SecretStore
  readonly workdirRules: WorkdirRules
  readonly llmDefaults: LlmDefaults
  readonly version: string
  readonly isolation: 'bubblewrap' | 'none'
  readonly logger: Logger
  /** A redactor that knows the server's own secrets already. */
  readonly createRedactor: () => Redactor
  readonly createLlm: (options: { config: LlmConfig; redact: (text: string) => string; conversationId: string }) => Llm
  readonly createShells: (options: { conversationId: string; workdir: string; directory: string }) => Shells
  readonly createTools: (names: readonly string[], deps: ConversationToolDeps) => Tool[]
}

/** What tools get that differs from conversation to conversation. */
export type ConversationToolDeps = Pick<ToolDeps, 'shells' | 'stateDirectory' | 'lastOutput'> & {
  /** The one that holds now. */
  readonly workdir: () => string
}

/** An assembled conversation and what only its assembler may touch. */
export type Opened = {
  readonly conversation: Conversation
  readonly redact: (text: string) => string
  /** Takes up the credentials of an update; durable when it resolves. */
  readonly updateLlmSecrets: (update: LlmConfig) => Promise<void>
  /** Ends the shells, so that the next command starts in the workdir that holds then. */
  readonly leaveWorkdir: () => Promise<void>
  /** Takes it apart, with everything it started. */
  readonly dispose: (outcome: LogEnd) => Promise<void>
}

type OnChange = (state: State) => void

/** Events folded at a time. */
const FOLD_PAGE = 1000

export interface Assembler {
  /** Leaves nothing behind when it throws. */
  create(
    id: string,
    request: CreateConversation,
    idempotency: Idempotency | undefined,
    onChange: OnChange,
  ): Promise<{ opened: Opened; warnings: readonly string[] }>
  open(id: string, onChange: OnChange): Promise<Opened>
  /** Answers warnings. The new credentials hold from the next model request on. */
  configure(opened: Opened, update: UpdateConfig): Promise<readonly string[]>
  /** The fold of a log that is not open; undefined when it holds no event. */
  readState(id: string): Promise<State | undefined>
}

export function createAssembler(deps: AssemblyDeps): Assembler {
  return {
    async create(id, request, idempotency, onChange) {
      const llm = parseNewLlm(request.llm_config, deps.llmDefaults)
      const tools = resolveToolNames(request.tools ?? DEFAULT_TOOLS)
      const secrets: SecretValues = { llm: llmSecrets(llm.config) }
      const redactor = createRedactorWith(deps, secrets)
      await makeDirectory(deps.catalog.directoryOf(id))
      // Side by side: most of what a create takes is waiting for the disk. The log's first event comes after all of it,
      // so a create that is cut off anywhere leaves no conversation.
      const workdirMade = prepareWorkdir(request.workdir, id, deps.workdirRules)
      const secretsStored = Object.keys(secrets['llm']!).length ? deps.secretStore.write(id, secrets) : undefined
      const logMade = deps.store.create(id)
      try {
        await Promise.allSettled([workdirMade, secretsStored, logMade])
        const workdir = await workdirMade
        const warnings = [...llm.warnings, ...toolWarning(llm.config, tools)]
        const settings = newSettings({
          request,
          idempotency: idempotency && { ...idempotency, ...(warnings.length > 0 && { warnings }) },
          llm: llm.config,
          workdir,
          tools,
          redact: redactor.redact,
        })
        await secretsStored
        const stored = await logMade
        const opened = assemble(deps, { stored, state: { ...EMPTY_STATE, id, settings }, secrets, redactor, onChange })
        await opened.conversation.log.append(firstEvents(deps, id, request, settings, opened.redact))
        return { opened, warnings }
      } catch (error) {
        // Its descriptor with it.
        await deps.store.delete(id)
        await rm(deps.catalog.directoryOf(id), { recursive: true, force: true })
        const workdir = request.workdir === undefined ? await workdirMade.catch(() => undefined) : undefined
        if (workdir !== undefined) await rm(workdir, { recursive: true, force: true })
        throw error
      }
    },

    async open(id, onChange) {
      const { log: stored, repaired } = await deps.store.open(id)
      try {
        if (repaired) deps.logger.warn({ conversation_id: id }, repaired)
        const state = await foldLog(stored, await deps.catalog.read(id))
        if (!state.createdAt) throw new Problem('conversation_damaged', `The log of conversation ${id} is empty.`)
        const secrets = await readSecrets(deps, id)
        return assemble(deps, { stored, state, secrets, redactor: createRedactorWith(deps, secrets), onChange })
      } catch (error) {
        await stored.close()
        throw error
      }
    },

    async configure(opened, update) {
      const llm = update.llm_config ? parseLlmUpdate(update.llm_config) : undefined
      await opened.conversation.configure(async (state) => {
        const workdir =
          update.workdir === undefined ? undefined : await prepareWorkdir(update.workdir, state.id, deps.workdirRules)
        return {
          changes: changesOf({ update, llm: llm?.config, workdir, redact: opened.redact }),
          // Before the log tells of them: a change that is told holds.
          prepare: () => opened.updateLlmSecrets(llm?.config ?? {}),
          afterwards: async () => (workdir === undefined ? undefined : await opened.leaveWorkdir()),
        }
      })
      const { settings } = opened.conversation.state
      return [
        ...(llm?.warnings ?? []),
        ...(llm?.config.model === undefined ? [] : toolWarning(settings.llm_config, settings.tools)),
      ]
    },

    async readState(id) {
      const { log } = await deps.store.open(id)
      try {
        const state = await foldLog(log, undefined)
        return state.createdAt ? state : undefined
      } finally {
        await log.close()
      }
    },
  }
}

/** An existing one may hold a conversation that was put there by hand: it is neither used nor, when something fails, removed. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new Problem(
      'conversation_exists',
      'There is data of a conversation with this id; restart the server to see it, or use another id.',
      { cause },
    )
  }
}

/** What cannot be decrypted is missing, and told when it is needed: the rest of the conversation can still be read. */
async function readSecrets({ secretStore, logger }: AssemblyDeps, id: string): Promise<SecretValues> {
  try {
    return await secretStore.read(id)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    logger.warn({ conversation_id: id }, error.message)
    return {}
  }
}

type Parts = {
  readonly stored: StoredLog
  readonly state: State
  readonly secrets: SecretValues
  readonly redactor: Redactor
  readonly onChange: OnChange
}

function assemble(deps: AssemblyDeps, { stored, state, secrets, redactor, onChange }: Parts): Opened {
  const id = stored.conversationId
  const { logger, catalog } = deps
  const { redact } = redactor
  let llmValues = secrets['llm'] ?? {}

  const log = createEventLog({
    log: stored,
    onListenerError: (error) => logger.error({ err: error, conversation_id: id }, 'a reader failed'),
  })
  let shells: Shells | undefined
  const workdir = () => conversation.state.settings.workdir
  const currentShells = () =>
    (shells ??= deps.createShells({ conversationId: id, workdir: workdir(), directory: catalog.directoryOf(id) }))
  const closeShells = async () => {
    const closing = shells
    shells = undefined
    await closing?.close()
  }

  const toolCalls = createToolCalls({
    tools: deps.createTools(state.settings.tools, {
      shells: { get: (sessionId) => currentShells().get(sessionId) },
      stateDirectory: catalog.directoryOf(id),
      workdir,
      lastOutput: (name) => conversation.state.lastOutputs[name],
    }),
    context: () => ({ conversationId: id, workdir: workdir() }),
    redact,
    emit: async (drafts) => void (await log.append(drafts)),
    onOutput: (tool_use_id, stream, text, offset) =>
      log.publish({ type: 'ToolOutputDelta', tool_use_id, stream, offset, text }),
    // As text without secrets: what a tool throws may quote what it was given.
    onCrash: (error, call) =>
      logger.error({ error: redact(errorText(error)), conversation_id: id, tool: redact(call.name) }, 'a tool threw'),
  })
  const conversation: Conversation = new Conversation({
    log,
    state,
    toolCalls,
    redact,
    createLlm: (stored) =>
      deps.createLlm({ config: withLlmSecrets(stored, llmValues, deps.llmDefaults), redact, conversationId: id }),
    logger,
    markActive: (active) => (active ? catalog.markActive(id) : catalog.unmarkActive(id)),
    onChange,
  })
  if (state.settings.visualize)
    log.subscribe({
      onEvents: (events) => events.forEach(({ event }) => logger.info({ conversation_id: id }, describeEvent(event))),
    })

  return {
    conversation,
    redact,
    leaveWorkdir: closeShells,
    async updateLlmSecrets(update) {
      if (update.api_key === undefined && !update.extra_headers) return
      const merged = mergeLlmSecrets(llmValues, update)
      await deps.secretStore.write(id, { ...secrets, llm: merged })
      llmValues = merged
      hideLlmSecrets(redactor, llmValues)
    },
    async dispose(outcome) {
      try {
        await conversation.close(outcome)
      } finally {
        await closeShells()
      }
    },
  }
}

/** Goes on from the noted state where that fits the log, and from the beginning where it does not. */
async function foldLog(log: StoredLog, noted: State | undefined): Promise<State> {
  let state = noted && noted.lastSeq <= log.head ? noted : EMPTY_STATE
  while (state.lastSeq < log.head) {
    const page = await log.read({ afterSeq: state.lastSeq, limit: FOLD_PAGE })
    for (const { event } of page.events) state = fold(state, event)
  }
  return state
}

function firstEvents(
  deps: AssemblyDeps,
  id: string,
  request: CreateConversation,
  settings: Settings,
  redact: (text: string) => string,
): EventDraft[] {
  const { workdir, tools, microagents = [] } = settings
  const extensions = request.system_prompt_extensions ?? []
  const base = request.system_prompt === undefined ? {} : { base: request.system_prompt }
  const init: EventDraft = {
    type: 'SystemInit',
    source: 'environment',
    session_id: id,
    cwd: workdir,
    sdk_version: deps.version,
    options_summary: settings,
    enabled_tools: [...tools],
    enabled_providers: [settings.llm_config.custom_llm_provider ?? 'openai'],
    mcp_servers: [],
    system_prompt: redact(buildSystemPrompt({ workdir, tools, ...base, extensions, microagents })),
    isolation: deps.isolation,
  }
  const { initial_message: message } = request
  if (!message) return [init]
  const content = redactParts(partsOf(message.content), redact)
  return [
    init,
    {
      type: 'UserMessage',
      source: 'user',
      content,
      run: false,
      ...(message.sender !== undefined && { sender: redact(message.sender) }),
    },
  ]
}

function toolWarning({ model = '' }: LlmConfig, tools: readonly string[]): string[] {
  return tools.length && seemsToLackTools(model)
    ? [`${model} does not seem to support function calling; the agent may not be able to use its tools`]
    : []
}

function createRedactorWith({ createRedactor }: AssemblyDeps, secrets: SecretValues): Redactor {
  const redactor = createRedactor()
  hideLlmSecrets(redactor, secrets['llm'] ?? {})
  return redactor
}

/** Others, such as OpenRouter's `X-Title`, hold plain words, which would then be missing from the agent's own work. */
const SECRET_HEADER = /auth|key|token|secret|cookie|passw|credential|signature/i

function hideLlmSecrets(redactor: Redactor, values: Record<string, string>): void {
  if (values['api_key'] !== undefined) redactor.set('LLM_API_KEY', values['api_key'])
  for (const [name, value] of Object.entries(keptHeaders(values)))
    if (SECRET_HEADER.test(name)) redactor.set(`header ${name}`, value)
}

const errorText = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error))

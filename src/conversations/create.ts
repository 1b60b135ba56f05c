/** Creates a conversation from a client's request: its workdir, its secrets and its log with the first events. */
import type { CreateConversation } from '../contract/conversation.ts'
import type { Hooks } from '../contract/hooks/hooks.ts'
import { eachHook } from '../contract/hooks/hooks.ts'
import { Problem } from '../contract/problem.ts'
import { removeTree } from '../files/trees/remove-tree.ts'
import type { ReadMcp } from '../mcp/read-config.ts'
import { readMcp } from '../mcp/read-config.ts'
import { redactProblem } from '../security/redaction/redact-problem.ts'
import type { ConversationStorage, SecretValues } from '../storage/storage.ts'
import { resolveToolNames } from '../tools/registry.ts'
import { buildConversation } from './build.ts'
import { checkBudget } from './subagents/check-budget.ts'
import { checkEndpoint } from './config/check-endpoint.ts'
import { checkSettings } from './check-settings.ts'
import { boundTo, originOf } from './config/llm-origin.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { ConversationSecrets } from './config/secrets.ts'
import type { ParsedLlm } from './config/settings.ts'
import { llmSecrets, newSettings, parseNewLlm, rulesIn, shownFields, storedAsSent } from './config/settings.ts'
import { loadForConversation } from './project/load-for-conversation.ts'
import { joinMcp } from './project/join-mcp.ts'
import { redactProject } from './project/redact-project.ts'
import { ruleWarning } from './config/rule-warning.ts'
import { toolWarning } from './config/tool-warning.ts'
import type { Conversation } from './conversation.ts'
import type { ConversationDeps } from './dependencies.ts'
import { firstEvents } from './first-events.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { keptOf } from '../state/idempotency.ts'
import { requireReadable } from '../state/settings.ts'
import type { State } from '../state/state.ts'
import { EMPTY_STATE } from '../state/state.ts'
import { withHistory } from './earlier-messages.ts'
import { checkAgents } from './subagents/check-agents.ts'
import { credentialsOf } from './hooks/hook-settings.ts'
import { joinHooks } from './hooks/join-hooks.ts'
import { NO_CALLBACKS } from '../webhooks/callback-record.ts'
import { enterAsGuest, leaveAsGuest } from '../workspace/workdirs/guest-workdirs.ts'
import { checkDirectories, prepareWorkdir } from '../workspace/workdirs/workdir.ts'
import type { ProjectSettings } from '../contract/project/project-settings.ts'
import { projectTools } from '../project/project-prompt.ts'

export type CreateOptions = {
  readonly id: string
  readonly request: CreateConversation
  readonly idempotency: Idempotency | undefined
  /** Throws a `Problem` if the client may not use these hooks. */
  readonly mayUse: (hooks: Hooks) => void
  /** The same for MCP servers of its project. */
  readonly mayConnect: (mcp: CreateConversation['mcp']) => void
  /** Aborted when the server stops: hooks of the first message may take long. */
  readonly signal: AbortSignal
  readonly onChange: (state: State) => void
}

export type CreatedConversation = { readonly conversation: Conversation; readonly warnings: readonly string[] }

/** Removes everything it created if it throws. */
export async function createConversation(deps: ConversationDeps, options: CreateOptions): Promise<CreatedConversation> {
  const { id, idempotency, mayUse, mayConnect, signal, onChange } = options
  const request = withHistory(options.request)
  const own = deps.storage.conversation(id)
  const { llm, tools: askedTools, mcp } = await checkRequest(deps, request)
  const keptSecrets = secretsIn(request, llm, mcp)
  const redactor = deps.createRedactor(id)
  const secrets = new ConversationSecrets({
    redactor,
    keptValues: keptSecrets,
    write: (values) => own.writeSecrets(values),
    id,
    logger: deps.logger,
  })
  await checkSettings(request, { deps, redactor })
  const servers = Object.keys(mcp?.servers ?? {})
  const clientTools = (request.client_tools ?? []).map(({ name }) => name)
  const { redact } = redactor
  const agents = request.agents && checkAgents(request.agents, { llm: llm.config, servers, clientTools, redact })
  refuseSecretsIn(asSent(options, llm, mcp), redact)
  await own.reserve()
  // Run these in parallel: most of a create request is spent waiting for the disk. The log's first event is written
  // last, so an interrupted create leaves no conversation.
  const { workdirRules } = deps.workspace
  const workdirMade = prepareWorkdir(request.workdir, id, workdirRules)
  const logMade = own.createLog(keptSecrets)
  let conversation: Conversation | undefined
  try {
    await Promise.allSettled([workdirMade, logMade])
    const workdir = await workdirMade
    if (request.workdir !== undefined) await enterAsGuest(guestsOf(deps), workdir, id)
    const additionalDirectories = await checkDirectories(request.additional_directories, workdirRules)
    const rawProject = await loadForConversation(deps, request, { workdir, stateDirectory: own.directory })
    const { hooks, warnings: ofHooks } = await joinHooks(deps.hooks, { request, rawProject, secrets, redactor, mayUse })
    const mcpServers = await joinMcp({ requested: mcp, rawProject, secrets, mayConnect })
    const project = rawProject && redactProject(rawProject, redactor.redact)
    const { tools, warnings: ofTools } = offeredTools(askedTools, request, project?.settings)
    const budget = { ...request, llm_config: llm.config, agents, project_settings: project?.settings }
    const warnings = [
      ...llm.warnings,
      ...toolWarning(llm.config, tools),
      ...ofTools,
      ...ruleWarning(request).map(redact),
      ...ofHooks,
      ...checkBudget(budget, deps.models, redact),
    ]
    const settings = newSettings({
      request,
      idempotency: idempotency && { ...keptOf(idempotency), ...(warnings.length > 0 && { warnings }) },
      llm: llm.config,
      workdir,
      additionalDirectories,
      tools,
      hooks,
      project,
      mcp: mcpServers,
      agents,
      redact,
    })
    requireReadable(settings, request)
    const state = { ...EMPTY_STATE, id, settings }
    conversation = buildConversation(deps, {
      stored: await logMade,
      state,
      secrets,
      callbacks: NO_CALLBACKS,
      redactor,
      onChange,
    })
    const promptHooks = await conversation.messages.checkFirst(request.initial_message, signal)
    const secretNames = secrets.names()
    const news = { id, request, settings, project, secretNames, redactor, promptHooks }
    await conversation.log.append(await firstEvents(deps, news), { isForClient: true })
    return { conversation, warnings }
  } catch (error) {
    await undo(deps, own, { request, conversation, workdirMade })
    throw error instanceof Problem ? redactProblem(error, redactor.redact) : error
  }
}

type CheckedSettings = { readonly llm: ParsedLlm; readonly tools: readonly string[]; readonly mcp: ReadMcp | undefined }

/** Returns what is stored as it was sent. */
const asSent = ({ request, idempotency }: CreateOptions, llm: ParsedLlm, mcp: ReadMcp | undefined) => ({
  workdir: request.workdir,
  additional_directories: request.additional_directories?.join('\n'),
  'Idempotency-Key': idempotency?.key,
  mcp: mcp?.servers,
  ...storedAsSent(request),
  ...shownFields(llm.config),
})

/** Throws a `Problem` if this server does not allow the request. */
async function checkRequest(deps: ConversationDeps, request: CreateConversation): Promise<CheckedSettings> {
  const llm = parseNewLlm(request.llm_config, deps.models.defaults)
  await checkEndpoint(llm.config, deps.models.endpointRefusal)
  const tools = resolveToolNames(request.tools ?? 'default', deps.exec.missingTools)
  rulesIn(request, (text) => text)
  return { llm, tools, mcp: request.mcp && readMcp(request.mcp) }
}

function secretsIn(request: CreateConversation, { config }: ParsedLlm, mcp: ReadMcp | undefined): SecretValues {
  const credentials = llmSecrets(config)
  const isEmpty = Object.keys(credentials).length === 0
  const hooks = request.hooks ? credentialsOf(eachHook(request.hooks), () => undefined) : {}
  return {
    llm: isEmpty ? {} : boundTo(originOf(config), credentials),
    env: request.secrets ?? {},
    hooks,
    ...(mcp && Object.keys(mcp.credentials).length > 0 && { mcp: { ...mcp.credentials } }),
  }
}

const NOT_CLOSED = 'a conversation that could not be created was not closed cleanly'

type BegunCreation = Pick<CreateOptions, 'request'> & {
  readonly conversation: Conversation | undefined
  readonly workdirMade: Promise<string>
}

async function undo(
  deps: ConversationDeps,
  own: ConversationStorage,
  { request, conversation, workdirMade }: BegunCreation,
): Promise<void> {
  const { id } = own
  // The firehose and other holders of its log keep it until it is closed.
  await conversation
    ?.dispose('deleted')
    .catch((cause: unknown) => deps.logger.error({ err: cause, conversation_id: id }, NOT_CLOSED))
  await own.discard()
  const workdir = await workdirMade.catch(() => undefined)
  if (workdir !== undefined && request.workdir === undefined) await removeTree(workdir)
  else if (workdir !== undefined) await leaveAsGuest(guestsOf(deps), workdir, id)
}

const guestsOf = ({ storage, workspace }: ConversationDeps) => ({
  storage,
  workdirBase: workspace.workdirRules.base,
})

const OF_PROJECTS: readonly string[] = ['Skill', 'SlashCommand']

/** `Skill`, `SlashCommand` and `Task` are offered if the agent can use something with them. A list of no tools stays empty. */
function offeredTools(
  requestedTools: readonly string[],
  { tools, agents }: Pick<CreateConversation, 'tools' | 'agents'>,
  settings: ProjectSettings | undefined,
): { readonly tools: readonly string[]; readonly warnings: readonly string[] } {
  const foundTools = settings && requestedTools.length > 0 ? projectTools(settings) : []
  const hasAgents = Object.keys(agents ?? {}).length > 0 || settings?.agents.some(({ definition }) => definition)
  const task = hasAgents && requestedTools.length > 0 ? ['Task'] : []
  const missing = OF_PROJECTS.filter((name) => requestedTools.includes(name) && !foundTools.includes(name))
  const isNamed = Array.isArray(tools)
  return {
    tools: [...new Set([...requestedTools, ...foundTools, ...task])].filter((name) => !missing.includes(name)),
    warnings: isNamed ? missing.map((name) => `${name} is not offered: the project settings have nothing for it.`) : [],
  }
}

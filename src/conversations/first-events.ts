/** The first events of a log: how the conversation was created, and the message it was created with. */
import type { CreateConversation } from '../contract/conversation.ts'
import type { EventDraft } from '../contract/events/event.ts'
import { messageOf, partsOf } from '../contract/values/message.ts'
import type { PromptHooks } from '../state/hook-decisions.ts'
import { buildSystemPrompt } from '../agent/prompt.ts'
import type { LoadedProject } from '../project/load-project.ts'
import { projectPrompt } from '../project/project-prompt.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import { redactLongParts } from './config/redact-parts.ts'
import type { Settings } from '../state/settings.ts'
import { agentEntries } from './subagents/definitions.ts'
import type { ConversationDeps } from './dependencies.ts'

export type NewConversation = {
  readonly id: string
  readonly request: CreateConversation
  readonly settings: Settings
  /** Redacted. */
  readonly project: LoadedProject | undefined
  readonly secretNames: readonly string[]
  readonly redactor: Pick<Redactor, 'redact' | 'redactInSlices'>
  /** What hooks said about the first message. */
  readonly promptHooks: PromptHooks | undefined
}

/** A client may send megabytes of each text. */
export async function firstEvents(
  deps: ConversationDeps,
  {
    id,
    request,
    settings: { project_settings, ...settings },
    project,
    secretNames,
    redactor,
    promptHooks,
  }: NewConversation,
): Promise<EventDraft[]> {
  const { workdir, tools, microagents = [] } = settings
  const agents = agentEntries({ ...settings, ...(project_settings && { project_settings }) }).map(({ name }) => name)
  // Redact only the parts of the prompt that others wrote; the server's own text has no secrets and is long.
  const { redact, redactInSlices } = redactor
  const { system_prompt, system_prompt_extensions = [] } = request
  const extensions: string[] = []
  for (const each of system_prompt_extensions) extensions.push(await redactInSlices(each))
  const base = system_prompt === undefined ? {} : { base: await redactInSlices(system_prompt) }
  const init: EventDraft = {
    type: 'SystemInit',
    source: 'environment',
    session_id: id,
    cwd: workdir,
    sdk_version: deps.server.version,
    options_summary: settings,
    enabled_tools: [...tools],
    enabled_providers: [settings.llm_config.custom_llm_provider ?? 'openai'],
    mcp_servers: [
      ...Object.keys(settings.mcp ?? {}).map((name) => ({ name, status: 'pending' })),
      ...(project_settings?.mcp_servers ?? [])
        .filter((name) => !Object.hasOwn(settings.mcp ?? {}, name))
        .map((name) => ({ name, status: 'not_connected' })),
    ],
    ...(agents.length > 0 && { agents }),
    system_prompt: buildSystemPrompt({
      workdir,
      additionalDirectories: settings.additional_directories,
      tools,
      hasMoreTools: settings.mcp !== undefined || (settings.client_tools ?? []).length > 0,
      ...base,
      ...(project && { project: projectPrompt(project, tools) }),
      extensions,
      microagents,
    }),
    isolation: deps.server.isolation,
    resource_limits: deps.limits.inForce(request.limits),
    network: settings.network ?? deps.network.server.default,
    ...(project_settings && { project_settings }),
    ...(deps.server.sandbox && { sandbox: deps.server.sandbox }),
  }
  const secrets: EventDraft = { type: 'SecretsUpdate', source: 'user', added: [...secretNames], removed: [] }
  const createdEvents = secretNames.length > 0 ? [init, secrets] : [init]
  if (request.initial_message === undefined) return createdEvents
  const message = messageOf(request.initial_message)
  const content = await redactLongParts(partsOf(message.content), redactInSlices)
  return [
    ...createdEvents,
    ...(promptHooks?.events ?? []),
    {
      type: 'UserMessage',
      source: 'user',
      content,
      run: false,
      ...(message.sender !== undefined && { sender: redact(message.sender) }),
      ...(promptHooks?.context !== undefined && { context: promptHooks.context }),
    },
  ]
}

/** What a conversation gets from the command line: the body of its creation, and what changes in a resumed one. */
import type { BodyOf } from '../../client/operations/operations.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { McpInput } from '../../contract/mcp/mcp-server.ts'
import type { PersonalSettings } from './settings-file.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import type { GivenSettings, RunSetting } from './given-settings.ts'
import { splitByEffect } from './given-settings.ts'

/** Options that hold for the runs of one command, and leave nothing in a conversation that it resumes. */
export type OverrideOptions = Pick<
  BodyOf<'runConversation'>,
  'model' | 'permission_mode' | 'allowed_tools' | RunSetting
>

type FromOptions =
  | 'toolChoice'
  | 'permissionMode'
  | 'allowedTools'
  | 'disallowedTools'
  | 'systemPrompt'
  | 'appendSystemPrompt'
  | 'resume'
  | 'sessionId'
  | 'forks'

export type ConversationSettings = Pick<RunInvocation, FromOptions> & {
  /** Undefined for a remote server, which makes a directory. */
  readonly cwd: string | undefined
  readonly addDirs: readonly string[]
  /** Whether `cwd` was given, and is not only the current directory. */
  readonly hasCwd: boolean
  /** The values from options, environment and settings file. */
  readonly llm: LlmConfig
  /** The values from options only. */
  readonly givenLlm: LlmConfig
  readonly mcp: McpInput | undefined
  /** The tools and hooks of the settings file. */
  readonly tools: PersonalSettings['tools']
  readonly hooks: PersonalSettings['hooks']
  /** The person's own, as parts of the system prompt. */
  readonly instructions: readonly string[]
  /** The values from options that are settings. */
  readonly givenSettings: GivenSettings
  /** Whether mode, rules and model of the command line hold for its runs, and do not change a resumed conversation. */
  readonly overridesRuns: boolean
  /** Whether instructions and skills of the directory are loaded. They give no rights. */
  readonly loadsProject: boolean
}

/** The default preset, questions and subagents. Tools for skills are added if the project has some. */
const TOOLS = ['Bash', 'FileEditor', 'TaskTracker', 'AskUserQuestion', 'Task']

/** An agent on the machine of a person asks before it changes something, unlike conversations of the API. */
const DEFAULT_MODE = 'default'

export function newConversation(settings: ConversationSettings): BodyOf<'createConversation'> {
  const {
    cwd,
    llm,
    permissionMode = DEFAULT_MODE,
    allowedTools,
    disallowedTools,
    mcp,
    givenSettings,
    loadsProject,
  } = settings
  const { addDirs, tools, hooks, instructions, systemPrompt, appendSystemPrompt } = settings
  const extensions = [...instructions, ...(appendSystemPrompt === undefined ? [] : [appendSystemPrompt])]
  const llm_config = { ...llm, ...toolChoiceOf(settings) }
  return withoutUndefined({
    workdir: cwd,
    additional_directories: addDirs.length > 0 ? [...addDirs] : undefined,
    tools: tools ?? TOOLS,
    hooks,
    llm_config: Object.keys(llm_config).length > 0 ? llm_config : undefined,
    permission_mode: permissionMode,
    allowed_tools: allowedTools.length > 0 ? [...allowedTools] : undefined,
    disallowed_tools: disallowedTools.length > 0 ? [...disallowedTools] : undefined,
    system_prompt: systemPrompt,
    system_prompt_extensions: extensions.length > 0 ? extensions : undefined,
    mcp,
    ...withoutUndefined(givenSettings),
    setting_sources: loadsProject ? ['project' as const] : undefined,
  })
}

type ResumedSettings = {
  readonly llm_config: LlmConfig
  readonly additional_directories?: readonly string[] | undefined
}

/**
 * Undefined if nothing changes. A resumed conversation keeps its model. It gets the current key if that is for the same
 * endpoint: the stored one may have expired.
 */
export function changesOfResumed(
  settings: ConversationSettings,
  { llm_config: storedLlm, additional_directories: directories = [] }: ResumedSettings,
): BodyOf<'updateConfig'> | undefined {
  const { cwd, addDirs, hasCwd, llm, overridesRuns } = settings
  const appliedSettings = overridesRuns ? withoutOverrides(settings) : settings
  const isSameEndpoint = llm.base_url === storedLlm.base_url && llm.model === storedLlm.model
  const llm_config = {
    ...(isSameEndpoint && llm.api_key !== undefined && { api_key: llm.api_key }),
    ...appliedSettings.givenLlm,
    ...toolChoiceOf(settings),
  }
  const changes = withoutUndefined({
    workdir: hasCwd ? cwd : undefined,
    additional_directories: addDirs.length > 0 ? [...new Set([...directories, ...addDirs])] : undefined,
    permission_mode: appliedSettings.permissionMode,
    llm_config: Object.keys(llm_config).length > 0 ? llm_config : undefined,
    ...appliedSettings.givenSettings,
  })
  return Object.keys(changes).length > 0 ? changes : undefined
}

/** Returns what the runs of this command have instead of the settings of a resumed conversation. */
export function runOverrides({
  permissionMode,
  allowedTools,
  givenLlm,
  givenSettings,
}: ConversationSettings): OverrideOptions {
  return withoutUndefined({
    model: hasModelOnly(givenLlm) ? givenLlm.model : undefined,
    permission_mode: permissionMode,
    allowed_tools: allowedTools.length > 0 ? [...allowedTools] : undefined,
    ...splitByEffect(givenSettings).runs,
  })
}

/**
 * Returns true if only the model is given: otherwise the model is that of the conversation, as a run stays at the
 * endpoint.
 */
const hasModelOnly = ({ model, ...others }: LlmConfig): boolean =>
  model !== undefined && Object.values(others).every((value) => value === undefined)

const withoutOverrides = ({ givenLlm, givenSettings }: ConversationSettings) => ({
  givenSettings: splitByEffect(givenSettings).changes,
  permissionMode: undefined,
  givenLlm: hasModelOnly(givenLlm) ? {} : givenLlm,
})

/** `required` is not stored: it holds for one turn. */
const toolChoiceOf = ({ toolChoice }: Pick<ConversationSettings, 'toolChoice'>): LlmConfig =>
  toolChoice === undefined || toolChoice === 'required' ? {} : { tool_choice: toolChoice }

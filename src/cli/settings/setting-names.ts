/** What the command line calls the fields of the API: the option, variable or key of a file that a person wrote. */
import { OPTION_SETTINGS, SETTING_OPTIONS } from '../../contract/setting-options.ts'

/** The option or variable that a person would use to set a field. */
const DEFAULTS: Readonly<Record<string, string>> = {
  llm_config: 'the settings of the model',
  'llm_config.model': '--model',
  'llm_config.base_url': '--base-url',
  'llm_config.api_key': 'LLM_API_KEY',
  'llm_config.provider': 'LLM_PROVIDER',
  'llm_config.temperature': 'temperature of the settings file',
  'llm_config.reasoning_effort': '--effort',
  'llm_config.fallback_models': '--fallback-model',
  'llm_config.tool_choice': '--tool-choice',
  mcp: '--mcp-config',
  permission_mode: '--permission-mode',
  allowed_tools: '--allowed-tools',
  permission_rules: '--allowed-tools',
  disallowed_tools: '--disallowed-tools',
  system_prompt: '--system-prompt',
  system_prompt_extensions: '--append-system-prompt',
  additional_directories: '--add-dir',
  max_steps: '--max-steps',
  ...Object.fromEntries(OPTION_SETTINGS.map((each) => [each, `--${SETTING_OPTIONS[each].name}`])),
  setting_sources: 'the project',
}

/** Fields without an option. */
const OTHERS: ReadonlySet<string> = new Set(['max_iteration_per_run', 'max_tokens_per_run'])

/** What can be a field of the API in a message. `mcp` is a common word: only the path of a field is meant. */
const FIELD =
  /\bllm_config(?:\.\w+)?|\bmcp(?=\.(?:mcpServers|stdio_servers|shttp_servers|sse_servers)\b)|\b[a-z]+(?:_[a-z]+){1,5}\b/g

const isField = (word: string): boolean =>
  word.startsWith('llm_config') || Object.hasOwn(DEFAULTS, word) || OTHERS.has(word)

/** Says what has set each field, such as `llm_config.model`. */
export type GivenNames = Readonly<Record<string, string>>

export class SettingNames {
  readonly #names: Map<string, string>

  constructor(names: GivenNames = {}) {
    this.#names = new Map(Object.entries({ ...DEFAULTS, ...names }))
  }

  set(field: string, name: string): void {
    this.#names.set(field, name)
  }

  of(field: string): string {
    return this.#names.get(field) ?? `${field} (a field of the REST API)`
  }

  /** Replaces the fields in a message of the server. */
  in(message: string): string {
    return message.replaceAll(FIELD, (word) => (isField(word) ? this.of(word) : word))
  }

  /** The same for an event that says why something failed; others are returned as they are. */
  inEvent<E extends { readonly type: string; readonly message?: unknown }>(event: E): E {
    const { type, message } = event
    const isFailure = type === 'ErrorEvent' || type === 'ModelRetry'
    return isFailure && typeof message === 'string' ? { ...event, message: this.in(message) } : event
  }
}

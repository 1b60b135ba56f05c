/** Says which option or setting cannot be used, for what is wrong by itself and for what the server refuses. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import { parseRule } from '../../policy/rules/rule.ts'
import { UsageError } from '../command-line/usage-error.ts'

/** Throws a `UsageError` for the first rule that cannot be read. */
export function requireRules(rules: readonly string[]): void {
  const fault = rules.map(parseRule).find((each) => typeof each === 'string')
  if (fault !== undefined) throw new UsageError(`--allowed-tools: ${fault}`)
}

/** How the messages of the server begin that are about a setting, and what the command line calls it. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(allowed_tools|permission_rules|allow)\b[^:]*: /, '--allowed-tools: '],
  [/^llm_config\.model: /, 'the model (--model, LLM_MODEL or model of the settings file): '],
  [/^llm_config\.api_key: /, 'the key of the model (--api-key, LLM_API_KEY or api_key of the settings file): '],
  [
    /^llm_config\.base_url: /,
    'the endpoint of the model (--base-url, LLM_BASE_URL or base_url of the settings file): ',
  ],
  [/^llm_config\./, 'the settings file: '],
  [/^setting_sources: /, 'the project: '],
  [/^mcp\b/, '--mcp-config or the settings file: mcp'],
  [/^The workdir is refused: /, 'the directory of the agent (--cwd) is refused: '],
]

/** What the server says about a request that only has settings of the command line. */
const WRONG_SETTINGS: ReadonlySet<string> = new Set(['invalid_request', 'unsafe_path', 'llm_endpoint_refused'])

/** Rejects with a `UsageError` if the server refuses a setting. */
export async function namingSettings<T>(request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    if (!(error instanceof AgentServerError && WRONG_SETTINGS.has(error.code))) throw error
    throw new UsageError(nameSetting(error.message), { cause: error })
  }
}

function nameSetting(message: string): string {
  const text = message.replace(/^body\./, '').replace(/[^.]$/, '$&.')
  const [begin, name] = NAMES.find(([each]) => each.test(text)) ?? [/^/, '']
  return text.replace(begin, () => name)
}

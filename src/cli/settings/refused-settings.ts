/** Says which option or setting cannot be used, for what is wrong by itself and for what the server refuses. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import { parseRule } from '../../policy/rules/rule.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { SettingNames } from './setting-names.ts'

/** Throws a `UsageError` for the first rule that cannot be read. */
export function requireRules(option: string, rules: readonly string[]): void {
  const fault = rules.map(parseRule).find((each) => typeof each === 'string')
  if (fault !== undefined) throw new UsageError(`--${option}: ${fault}`)
}

/** Beginnings of messages that name a setting without its field, each with the name in the command line. */
const BEGINNINGS: readonly (readonly [RegExp, string])[] = [
  [/^(allowed_tools|permission_rules|allow)\b[^:]*: /, '--allowed-tools: '],
  [/^(disallowed_tools|deny)\b[^:]*: /, '--disallowed-tools: '],
  [/^tools\.\d+(?= )/, '--tools: one of the names'],
  [/^mcp(?=[:.])/, 'mcp'],
  [/^The additional directory (?=\/)/, '--add-dir '],
  [/^The workdir is refused: /, 'the directory of the agent (--cwd) is refused: '],
]

/** What the server says about a request that only has settings of the command line. */
const WRONG_SETTINGS: ReadonlySet<string> = new Set([
  'invalid_request',
  'unsafe_path',
  'llm_endpoint_refused',
  'conversation_exists',
])

const OTHER_DIRECTORY =
  '--cwd and --add-dir cannot change anything while the agent works, or a call of the conversation waits; continue it without them first.'

/** Rejects with a `UsageError` if the server refuses a setting. */
export async function namingSettings<T>(names: SettingNames, request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    if (!(error instanceof AgentServerError)) throw error
    if (error.code === 'conversation_running') throw new UsageError(OTHER_DIRECTORY, { cause: error })
    if (!WRONG_SETTINGS.has(error.code)) throw error
    throw new UsageError(nameSetting(names, error.message), { cause: error })
  }
}

function nameSetting(names: SettingNames, message: string): string {
  const text = message.replace(/^body\./, '').replace(/[^.]$/, '$&.')
  const [begin, name] = BEGINNINGS.find(([each]) => each.test(text)) ?? [/^/, '']
  return names.in(text.replace(begin, () => (name === 'mcp' ? names.of(name) : name)))
}

/** The same error, with the names of settings in place of fields. */
export function withSettingNames(names: SettingNames, error: unknown): unknown {
  if (!(error instanceof AgentServerError)) return error
  const { code, status, details, retryAfterMs, message } = error
  return new AgentServerError(code, names.in(message), { status, details, retryAfterMs, cause: error })
}

/**
 * Options as the command lines of other agents call them. Those of Claude Code with the same meaning are understood, but are
 * neither in the help nor completed; for others an error names ours.
 */
import { isOtherModeName, MODE_NAMES } from '../../contract/mode-names.ts'

export const SAME: Readonly<Record<string, string>> = {
  'max-turns': 'max-steps',
  continue: 'autoresume',
  allowedTools: 'allowed-tools',
  disallowedTools: 'disallowed-tools',
}

/** Fields of a subagent. */
const SAME_OF_AGENT: Readonly<Record<string, string>> = {
  disallowedTools: 'disallowed_tools',
  maxTurns: 'max_steps',
  permissionMode: 'permission_mode',
}

const SKIPS_PERMISSIONS = '--dangerously-skip-permissions'

/** The same arguments with the names of this program. */
export function withOwnNames(args: readonly string[]): string[] {
  const end = args.indexOf('--')
  return args.map((arg, at) => (end >= 0 && at > end ? arg : ownArgument(arg, args[at - 1])))
}

function ownArgument(arg: string, before: string | undefined): string {
  if (before === '--permission-mode') return modeIn(arg)
  if (arg === SKIPS_PERMISSIONS) return '--permission-mode=bypass'
  const [option = '', ...value] = arg.split('=')
  if (option === '--permission-mode' && value.length > 0) return `${option}=${modeIn(value.join('='))}`
  const name = option.startsWith('--') ? option.slice(2) : ''
  return Object.hasOwn(SAME, name) ? [`--${SAME[name]}`, ...value].join('=') : arg
}

const modeIn = (text: string): string => (isOtherModeName(text) ? MODE_NAMES[text] : text)

/** Subagents with the field names of this API. What is not one stays as it is, for the schema. */
export function withOwnFields(agents: unknown): unknown {
  if (!isObject(agents)) return agents
  return Object.fromEntries(
    Object.entries(agents).map(([name, agent]) => [name, isObject(agent) ? ownAgent(agent) : agent]),
  )
}

function ownAgent(agent: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // A field in both forms stays, so that the schema refuses the other name.
  const fields = Object.entries(agent).map(([field, value]): [string, unknown] => {
    const own = Object.hasOwn(SAME_OF_AGENT, field) ? SAME_OF_AGENT[field] : undefined
    return [
      own === undefined || Object.hasOwn(agent, own) ? field : own,
      field === 'permissionMode' && typeof value === 'string' ? modeIn(value) : value,
    ]
  })
  return Object.fromEntries(fields)
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const SKIPPING = '--permission-mode bypass asks for nothing, and keeps the sandbox'
const MODES = 'use --permission-mode'
const CONNECT = 'use agent-server connect URL'
const LOCAL = 'use --base-url, such as http://localhost:11434/v1'
const WORKTREE = 'make one with git worktree add, and name it with --cwd'
const IN_EVENTS = 'stream-json always has these events: leave it out'
const TRUST = 'no directory needs trust: leave it out'
const PROMPT_FILE = 'give the text, as in --system-prompt "$(cat FILE)"'

/** What to use instead of an option of another agent that has another meaning, or none here. */
export const INSTEAD: Readonly<Record<string, string>> = {
  'include-directories': 'use --add-dir',
  'no-session-persistence': 'use --ephemeral, which deletes the conversation at the end',
  'permission-prompt-tool': 'use --ask, which says who answers approvals',
  'system-prompt-file': PROMPT_FILE,
  'append-system-prompt-file': PROMPT_FILE.replace('--', '--append-'),
  attach: CONNECT,
  remote: CONNECT,
  agent: 'use --agents, which defines subagents',
  worktree: WORKTREE,
  w: WORKTREE,
  oss: LOCAL,
  'local-provider': LOCAL,
  variant: 'use --effort',
  file: 'name the file in the prompt; --image attaches an image',
  command: 'begin the prompt with /NAME',
  'prompt-interactive': 'give the prompt without -p',
  'replay-user-messages': IN_EVENTS,
  'include-hook-events': IN_EVENTS,
  'skip-git-repo-check': TRUST,
  'skip-trust': TRUST,
  trust: TRUST,
  'allow-dangerously-skip-permissions': '/permissions bypass works in each chat: leave it out',
  'strict-mcp-config': 'only --mcp-config and the settings file name servers: leave it out',
  config: 'use --settings FILE',
  profile: 'use --settings FILE',
  color: 'set NO_COLOR=1 for none',
  share: 'use agent-server sessions export ID',
  'approval-mode': MODES,
  'ask-for-approval': MODES,
  a: MODES,
  'dangerously-bypass-approvals-and-sandbox': SKIPPING,
  yolo: SKIPPING,
  y: SKIPPING,
  auto: SKIPPING,
  sandbox: 'the sandbox is a setting of the environment, OPENHANDS_ISOLATION',
  'output-schema': 'use --json-schema',
  cd: 'use --cwd',
  C: 'use --cwd',
  dir: 'use --cwd',
  title: 'use --name',
  n: 'use --name',
  session: 'use --resume',
  fork: 'use --fork-session',
  format: 'use --output-format',
  prompt: 'use -p, with the prompt as an argument',
  'list-sessions': 'use agent-server sessions list',
  'delete-session': 'use agent-server sessions delete',
}

/** The options of `chat` and `connect`, read and checked against each other. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { PermissionMode } from '../../contract/values/permission.ts'
import type { OptionSetting } from '../../contract/setting-options.ts'
import { OPTION_SETTINGS, SETTING_OPTIONS } from '../../contract/setting-options.ts'
import type { Values } from './parse-options.ts'
import { listedRules } from './rule-lists.ts'
import { UsageError } from './usage-error.ts'
import { CONVERSATION_ID } from '../../contract/values/conversation-id.ts'

export type OutputFormat = 'text' | 'json' | 'stream-json'

export type RunInvocation = {
  readonly name: 'chat'
  /** URL of a remote server; undefined: the agents of this machine. */
  readonly server: string | undefined
  /** Whether the answer is printed, without the interactive chat. */
  readonly isHeadless: boolean
  readonly prompt: string | undefined
  readonly outputFormat: OutputFormat
  readonly inputFormat: 'text' | 'stream-json'
  readonly includesDeltas: boolean
  /** The source of approvals and answers of a headless run. */
  readonly ask: 'nobody' | 'stdin' | 'clients'
  /** The id of a conversation, the latest one of the directory, or of all; undefined: a new one. */
  readonly resume: { readonly id: string } | 'latest' | 'latest of all' | undefined
  readonly settings: string | undefined
  /** The key of the model; with `server` that of the server. */
  readonly apiKey: string | undefined
  readonly model: string | undefined
  readonly baseUrl: string | undefined
  readonly effort: string | undefined
  readonly fallbackModels: readonly string[]
  readonly toolChoice: LlmConfig['tool_choice']
  readonly permissionMode: PermissionMode | undefined
  readonly allowedTools: readonly string[]
  readonly disallowedTools: readonly string[]
  readonly systemPrompt: string | undefined
  readonly appendSystemPrompt: string | undefined
  /** The texts of options that are settings of the conversation, by setting: several of an option that is repeated. */
  readonly settingTexts: Readonly<Partial<Record<OptionSetting, readonly string[]>>>
  /** The id of a new conversation, or of a copy. */
  readonly sessionId: string | undefined
  /** Whether a copy of the conversation is continued. */
  readonly forks: boolean
  /** What the conversation goes back to, instead of a run: a seq, or the id of a message. */
  readonly rewind: string | undefined
  /** Whether a rewind changes nothing. */
  readonly isDryRun: boolean
  /** Whether a rewind replaces what somebody else has changed. */
  readonly isForced: boolean
  /** Whether the conversation is deleted at the end. */
  readonly isEphemeral: boolean
  /** Paths of images for the prompt. */
  readonly images: readonly string[]
  /** The path of the file that gets the last answer. */
  readonly lastMessage: string | undefined
  readonly maxSteps: number | undefined
  readonly cwd: string | undefined
  /** More directories of the agent. */
  readonly addDirs: readonly string[]
  readonly mcpConfig: string | undefined
  /** Files and directories of the home that the sandbox shows. */
  readonly homeReadable: readonly string[]
  readonly sshAgent: boolean
  /** Whether its conversations share caches of package managers. */
  readonly packageCache: boolean
}

export function readRunOptions(values: Values, words: readonly string[], server: string | undefined): RunInvocation {
  const isHeadless = values['no-tui'] === true || values.print === true
  const [outputFormat, inputFormat] = [values['output-format'] ?? 'text', values['input-format'] ?? 'text']
  checkFormats(values, words, isHeadless)
  checkSession(values)
  checkRewind(values, words)
  const { 'permission-mode': mode, 'max-steps': maxSteps } = values
  /* oxlint-disable typescript/no-unsafe-type-assertion -- `checkValues` has compared them with the choices */
  return {
    name: 'chat',
    server,
    isHeadless,
    prompt: words.length > 0 ? words.join(' ') : undefined,
    outputFormat: outputFormat as OutputFormat,
    inputFormat: inputFormat as RunInvocation['inputFormat'],
    includesDeltas: values['include-partial-messages'] === true,
    ask: (values.ask ?? 'nobody') as RunInvocation['ask'],
    resume: resumeOf(values),
    settings: values.settings,
    apiKey: values['api-key'],
    model: values.model,
    baseUrl: values['base-url'],
    effort: values.effort,
    fallbackModels: fallbackModels(values['fallback-model']),
    toolChoice: values['tool-choice'] as LlmConfig['tool_choice'],
    permissionMode: mode === 'prompt' ? 'default' : (mode as PermissionMode | undefined),
    allowedTools: listedRules('allowed-tools', values['allowed-tools']),
    disallowedTools: listedRules('disallowed-tools', values['disallowed-tools']),
    systemPrompt: values['system-prompt'],
    appendSystemPrompt: values['append-system-prompt'],
    settingTexts: Object.fromEntries(
      OPTION_SETTINGS.map((each) => {
        const givenValue = values[SETTING_OPTIONS[each].name]
        return [each, givenValue === undefined ? undefined : [givenValue].flat().map(String)]
      }),
    ),
    sessionId: values['session-id'],
    forks: values['fork-session'] === true,
    rewind: values.rewind,
    isDryRun: values['dry-run'] === true,
    isForced: values.force === true,
    isEphemeral: values.ephemeral === true,
    images: values.image ?? [],
    lastMessage: values['output-last-message'],
    maxSteps: maxSteps === undefined ? undefined : Number(maxSteps),
    cwd: values.cwd,
    addDirs: values['add-dir'] ?? [],
    mcpConfig: values['mcp-config'],
    homeReadable: values['home-readable'] ?? [],
    sshAgent: values['ssh-agent'] === true,
    packageCache: values['package-cache'] === true,
  }
  /* oxlint-enable typescript/no-unsafe-type-assertion */
}

const HEADLESS_ONLY = [
  'output-format',
  'input-format',
  'include-partial-messages',
  'ask',
  'rewind',
  'ephemeral',
  'image',
  'output-last-message',
] as const

function checkFormats(values: Values, words: readonly string[], isHeadless: boolean): void {
  const format = HEADLESS_ONLY.find((name) => values[name] !== undefined)
  if (!isHeadless && format !== undefined) throw new UsageError(`--${format} needs --no-tui.`)
  if (values['input-format'] === 'stream-json' && words.length > 0)
    throw new UsageError('with --input-format stream-json the prompts come from stdin; leave the argument out.')
  if (values['input-format'] === 'stream-json' && values.image)
    throw new UsageError('with --input-format stream-json images are parts of the messages; leave --image out.')
  if (values['include-partial-messages'] && values['output-format'] !== 'stream-json')
    throw new UsageError('--include-partial-messages needs --output-format stream-json.')
  const hasLines = values['input-format'] === 'stream-json' && values['output-format'] === 'stream-json'
  if (values.ask === 'stdin' && !hasLines)
    throw new UsageError('--ask stdin needs --input-format stream-json and --output-format stream-json.')
}

function checkSession({ 'session-id': id, 'fork-session': forks, ephemeral, resume, autoresume }: Values): void {
  const isResumed = resume !== undefined || autoresume === true
  if (ephemeral && isResumed && !forks)
    throw new UsageError('--ephemeral would delete the conversation; add --fork-session to work in a copy.')
  if (forks && !isResumed) throw new UsageError('--fork-session needs --resume or --autoresume.')
  if (id === undefined) return
  if (!CONVERSATION_ID.test(id)) throw new UsageError(`--session-id ${id} is not a UUID, as uuidgen prints one.`)
  if (isResumed && !forks)
    throw new UsageError('--session-id names a new conversation; give --resume alone, or add --fork-session.')
}

function checkRewind(
  { rewind, resume, autoresume, 'dry-run': isDryRun, force, 'fork-session': forks }: Values,
  words: readonly string[],
): void {
  if (isDryRun && rewind === undefined) throw new UsageError('--dry-run needs --rewind.')
  if (force && rewind === undefined) throw new UsageError('--force needs --rewind.')
  if (rewind === undefined) return
  if (resume === undefined && !autoresume) throw new UsageError('--rewind needs --resume or --autoresume.')
  if (words.length > 0) throw new UsageError('--rewind starts no run; give the prompt with the next command.')
  if (forks) throw new UsageError('--rewind takes the conversation itself back; leave --fork-session out.')
}

function resumeOf({ resume, autoresume, all }: Values): RunInvocation['resume'] {
  if (resume !== undefined && autoresume) throw new UsageError('use --resume or --autoresume, not both.')
  if (all && !autoresume) throw new UsageError('--all needs --autoresume.')
  if (all) return 'latest of all'
  return autoresume ? 'latest' : resume === undefined ? undefined : { id: resume }
}

/** Throws a `UsageError` if the option was given and names no model: there would be no other one. */
function fallbackModels(texts: readonly string[] | undefined): string[] {
  const names = (texts ?? []).flatMap(namesIn)
  if (texts && names.length === 0) throw new UsageError('--fallback-model names no model.')
  return names
}

const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)

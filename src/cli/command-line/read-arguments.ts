/** Reads the command line: which command, with which options. Runs nothing. */
import { parseArgs } from 'node:util'
import { nearestName } from '../../contract/nearest-name.ts'
import { checkValues } from './check-values.ts'
import type { CommandName, SessionAction, CompletedShell, SnippetName } from './subcommands.ts'
import { COMMAND_NAMES, commandNamed, isCommandName, SESSION_ACTIONS, SHELLS, SNIPPETS } from './subcommands.ts'
import type { RunInvocation } from './run-options.ts'
import { readRunOptions } from './run-options.ts'
import { isOptionName, OPTIONS, optionNamed } from './options.ts'
import { INSTEAD, SAME, withOwnNames } from './other-names.ts'
import type { Token, Values } from './parse-options.ts'
import { parseOptions } from './parse-options.ts'
import { refuseLooseRules } from './rule-lists.ts'
import { UsageError } from './usage-error.ts'

export type SessionsInvocation = {
  readonly name: 'sessions'
  readonly action: SessionAction
  /** Undefined for `list` and `prune`. */
  readonly id: string | undefined
  /** The title for `rename`. */
  readonly title: string | undefined
  readonly search: string | undefined
  /** All of which a conversation must have. */
  readonly labels: readonly string[]
  readonly cwd: string | undefined
  /** Milliseconds, for `prune`. */
  readonly olderThanMs: number | undefined
  readonly limit: number
  readonly json: boolean
  readonly server: string | undefined
  readonly apiKey: string | undefined
}

export type DashboardInvocation = {
  readonly name: 'dashboard'
  readonly server: string | undefined
  readonly apiKey: string | undefined
}

export type McpInvocation = { readonly name: 'mcp'; readonly run: RunInvocation }

export type SnippetInvocation = {
  readonly name: 'snippet'
  readonly of: SnippetName
  readonly server: string | undefined
}

export type AcpInvocation = {
  readonly name: 'acp'
  readonly run: RunInvocation
  /** Whether it only asks for a model. */
  readonly setsUp: boolean
}

export type TransferInvocation = { readonly name: 'import' | 'export'; readonly directory: string }

export type Invocation =
  | { readonly name: 'help'; readonly command: CommandName | undefined }
  | { readonly name: 'version' | 'demo' | 'key' }
  | {
      readonly name: 'serve'
      readonly generateKey: boolean
      readonly scriptedModel: boolean
      readonly stopWithStdin: boolean
      readonly host: string | undefined
      readonly port: string | undefined
      readonly logFormat: string | undefined
    }
  | { readonly name: 'scripted-model'; readonly port: string | undefined; readonly script: string | undefined }
  | { readonly name: 'completion'; readonly shell: CompletedShell }
  | SessionsInvocation
  | DashboardInvocation
  | AcpInvocation
  | McpInvocation
  | SnippetInvocation
  | TransferInvocation
  | RunInvocation
  | { readonly name: 'doctor'; readonly run: RunInvocation }

const DEFAULT_LIMIT = 20

/** `isTerminal`: whether stdin and stdout are terminals, on which a chat starts without a command. Throws a `UsageError`. */
export function readArguments(givenArguments: string[], { isTerminal = false } = {}): Invocation {
  const args = withOwnNames(givenArguments)
  checkOptions(args)
  const { values, tokens, positionals } = parseOptions(args)
  if (values.version) return { name: 'version' }
  const { name, words } = commandOf(positionals, tokens, isTerminal || values.help === true)
  if (values.help || name === 'help') return { name: 'help', command: topicOf(name, words) }
  if (name === undefined) throw new UsageError('say what to do: chat, serve or demo.')
  checkBelongs(name, tokens)
  refuseLooseRules(tokens)
  checkValues(values)
  return invocationOf(name, words, values)
}

/** Each option exists, and has a value exactly when it takes one. */
function checkOptions(args: string[]): void {
  const { tokens } = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    if (!isOptionName(name)) throw new UsageError(`there is no option ${rawName}${suggest(name, tokens)}`)
    const { type, mayBeEmpty } = optionNamed(name)
    const takesValue = type === 'string'
    const isMissing = value === undefined || (value.trim() === '' && !mayBeEmpty)
    if (takesValue && (isMissing || (!inlineValue && value.startsWith('-'))))
      throw new UsageError(`${rawName} needs a value.`)
    if (!takesValue && value !== undefined) throw new UsageError(`${rawName} takes no value.`)
  }
}

function suggest(option: string, tokens: readonly { readonly kind: string; readonly name?: string }[]): string {
  if (Object.hasOwn(INSTEAD, option)) return `; ${INSTEAD[option]}.`
  const nearest = nearestName(option, [...Object.keys(OPTIONS), ...Object.keys(SAME)])
  if (nearest !== undefined) return `; did you mean --${nearest}?`
  const isRun = tokens.some(({ name }) => name === 'no-tui' || name === 'print' || name === 'p')
  if (isRun && option === 'verbose') return '; what the agent does is always on stderr.'
  return isRun ? '; put -- before a prompt that begins with a dash.' : '.'
}

type NamedCommand = { readonly name: CommandName | undefined; readonly words: readonly string[] }

/**
 * The first word is the command, unless it follows an option of the chat, or is several words on a terminal: then it is the prompt. Without
 * a word the chat is meant, if its options are given or on a terminal.
 */
function commandOf(words: readonly string[], tokens: readonly Token[], isTerminal: boolean): NamedCommand {
  const [first, ...rest] = words
  const firstWord = tokens.findIndex(({ kind }) => kind === 'positional' || kind === 'option-terminator')
  const before = firstWord < 0 ? tokens : tokens.slice(0, firstWord)
  if (before.some((token) => token.kind === 'option' && isChatOnly(token.name))) return { name: 'chat', words }
  if (first === undefined) return { name: isTerminal && tokens.length === 0 ? 'chat' : undefined, words: [] }
  if (isCommandName(first)) return { name: first, words: rest }
  const nearest = nearestName(first, COMMAND_NAMES)
  const isPrompt = /\s/.test(first)
  if (isPrompt && isTerminal) return { name: 'chat', words }
  const help = isPrompt ? '; put -p before a prompt.' : `; a prompt of one word follows chat or -p.`
  throw new UsageError(`there is no command ${first}${nearest === undefined ? help : `; did you mean ${nearest}?`}`)
}

const isChatOnly = (option: string): boolean =>
  (belongs(option, 'chat') &&
    COMMAND_NAMES.every((name) => name === 'chat' || name === 'connect' || !belongs(option, name))) ||
  option === 'api-key'

const belongs = (option: string, name: CommandName): boolean =>
  commandNamed(name).options.some((name) => name === option)

function topicOf(name: CommandName | undefined, [first]: readonly string[]): CommandName | undefined {
  if (name !== 'help') return name
  if (first !== undefined && !isCommandName(first)) throw new UsageError(`there is no command ${first}.`)
  return first
}

function checkBelongs(name: CommandName, tokens: readonly Token[]): void {
  const other = tokens.find((token) => token.kind === 'option' && !belongs(token.name, name))
  if (other?.kind === 'option') throw new UsageError(`${name} has no option --${other.name}.`)
}

function invocationOf(name: CommandName, words: readonly string[], values: Values): Invocation {
  switch (name) {
    case 'chat':
      return readRunOptions(values, words, undefined)
    case 'connect': {
      const [url, ...prompt] = words
      return readRunOptions(values, prompt, urlOf(url))
    }
    case 'dashboard':
      noWords(words)
      return { name, server: serverOf(values), apiKey: values['api-key'] }
    case 'acp':
      noWords(words)
      return { name, run: headless(values, serverOf(values)), setsUp: values['set-up'] ?? false }
    case 'mcp':
      noWords(words)
      return { name, run: headless(values, serverOf(values)) }
    case 'snippet':
      return { name, of: oneOf(onlyOne(words), SNIPPETS, 'name a program'), server: serverOf(values) }
    case 'doctor':
      noWords(words)
      return { name, run: headless(values, undefined) }
    case 'sessions':
      return sessionsOf(words, values)
    case 'completion':
      return { name, shell: oneOf(onlyOne(words), SHELLS, 'name a shell') }
    case 'scripted-model':
      return { name, port: values.port, script: onlyOne(words) }
    case 'import':
    case 'export':
      noWords(words)
      return { name, directory: directoryOf(name, values) }
    case 'serve':
      noWords(words)
      return { name, ...serveOptions(values) }
    default:
      noWords(words)
      return name === 'help' ? { name, command: undefined } : { name }
  }
}

const headless = (values: Values, server: string | undefined): RunInvocation => ({
  ...readRunOptions(values, [], server),
  isHeadless: true,
})

function directoryOf(name: 'import' | 'export', { from, to }: Values): string {
  const directory = name === 'import' ? from : to
  if (directory === undefined)
    throw new UsageError(`${name} needs a data directory: ${name} ${name === 'import' ? '--from' : '--to'} DIRECTORY.`)
  return directory
}

function serveOptions(values: Values) {
  const { host, port, 'log-format': logFormat } = values
  const [generateKey, scriptedModel] = [values['generate-key'] ?? false, values['scripted-model'] ?? false]
  const stopWithStdin = values['stop-with-stdin'] ?? false
  return { host, port, logFormat, generateKey, scriptedModel, stopWithStdin }
}

function sessionsOf([word, ...rest]: readonly string[], values: Values): SessionsInvocation {
  const action = oneOf(word, SESSION_ACTIONS, 'say what to do')
  const [id, ...words] = rest
  const title = action === 'rename' && words.length > 0 ? words.splice(0).join(' ') : undefined
  const tooMany = WITHOUT_ID.has(action) ? id : words[0]
  if (tooMany !== undefined) throw new UsageError(`${tooMany} is one word too many.`)
  if (id === undefined && !WITHOUT_ID.has(action))
    throw new UsageError(`sessions ${action} needs the ID of a conversation.`)
  if (action === 'rename' && title === undefined) throw new UsageError('sessions rename needs an ID and a title.')
  const wrong = FILTERS.find((name) => values[name] !== undefined && !FILTERS_OF[action]?.includes(name))
  if (wrong !== undefined) throw new UsageError(`sessions ${action} has no option --${wrong}.`)
  const olderThanMs = action === 'prune' ? ageIn(values['older-than']) : undefined
  const server = serverOf(values)
  const limit = values.limit === undefined ? DEFAULT_LIMIT : Number(values.limit)
  const { search, label: labels = [], cwd, json = false, 'api-key': apiKey } = values
  return { name: 'sessions', action, id, title, search, labels, cwd, olderThanMs, limit, json, server, apiKey }
}

const MINUTE = 60_000
const UNITS: Readonly<Record<string, number>> = {
  m: MINUTE,
  h: 60 * MINUTE,
  d: 24 * 60 * MINUTE,
  w: 7 * 24 * 60 * MINUTE,
}

/** Returns the milliseconds of a time such as `30d`; undefined for another text. */
function millisecondsOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,5})([mhdw])$/.exec(text) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  return ms > 0 ? ms : undefined
}

const WITHOUT_ID: ReadonlySet<SessionAction> = new Set(['list', 'prune'])

const FILTERS = ['limit', 'search', 'label', 'cwd', 'older-than'] as const

/** An option that is ignored would have prune delete what it was to leave out. */
const FILTERS_OF: Readonly<Partial<Record<SessionAction, readonly string[]>>> = {
  list: ['limit', 'search', 'label', 'cwd'],
  prune: ['label', 'cwd', 'older-than'],
}

function ageIn(text: string | undefined): number {
  if (text === undefined) throw new UsageError('sessions prune needs --older-than, such as --older-than 30d.')
  const ms = millisecondsOf(text)
  if (ms === undefined) throw new UsageError(`--older-than ${text} is not an age; write 30d, 12h, 45m or 4w.`)
  return ms
}

const serverOf = ({ server }: Values): string | undefined => (server === undefined ? undefined : urlOf(server))

function urlOf(text: string | undefined): string {
  if (text === undefined) throw new UsageError('connect needs the URL of a server.')
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${text} is not a URL; write http:// or https:// and the host.`)
  return text
}

function oneOf<T extends string>(word: string | undefined, words: readonly T[], what: string): T {
  const foundWord = words.find((each) => each === word)
  if (foundWord !== undefined) return foundWord
  const complaint = word === undefined ? '' : `there is no ${word}; `
  throw new UsageError(`${complaint}${what}: ${words.join(', ')}.`)
}

function noWords([first]: readonly string[]): void {
  if (first !== undefined) throw new UsageError(`${first} is one word too many.`)
}

function onlyOne([first, second]: readonly string[]): string | undefined {
  if (second !== undefined) throw new UsageError(`${second} is one word too many.`)
  return first
}

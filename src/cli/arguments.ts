/** Reads the command line: which command, with which options. Knows the usage text, and runs nothing. */
import { parseArgs } from 'node:util'
import { nearestName } from '../contract/nearest-name.ts'

export const USAGE = `agent-server: hosts AI agents behind REST and Server-Sent Events

  agent-server serve [--host ADDRESS] [--port PORT] [--generate-key]
                     [--scripted-model] [--log-format json|pretty]
      Starts the server. It needs OPENHANDS_MASTER_KEY in the environment; with
      --generate-key it makes a key at first use, keeps it in the data directory,
      and listens on localhost (127.0.0.1 and ::1) by default. --scripted-model
      adds a stand-in for a model, to try the server without an account.
  agent-server key
      Prints the master key that serve --generate-key uses here, for scripts.
  agent-server demo
      Shows an agent doing a small real job. Needs no key and no network.
  agent-server scripted-model [--port PORT] [SCRIPT.json]
      A stand-in for a model, to try the server or test a client without a key:
      an OpenAI-compatible endpoint that plays a script, the demo's by default.
  agent-server -v, --version | -h, --help

All settings are environment variables; docs/configuration.md lists them.
`

/** Something on the command line is wrong: one sentence, no stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export type Invocation =
  | { readonly name: 'help' | 'version' | 'demo' | 'key' }
  | {
      readonly name: 'serve'
      readonly generateKey: boolean
      readonly scriptedModel: boolean
      readonly host: string | undefined
      readonly port: string | undefined
      readonly logFormat: string | undefined
    }
  | { readonly name: 'scripted-model'; readonly port: string | undefined; readonly script: string | undefined }

const OPTIONS = {
  host: { type: 'string' },
  port: { type: 'string' },
  'log-format': { type: 'string' },
  'generate-key': { type: 'boolean', default: false },
  'scripted-model': { type: 'boolean', default: false },
  version: { type: 'boolean', short: 'v', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const
type Option = keyof typeof OPTIONS

/** The options of each command, in addition to `--version` and `--help`. */
const COMMANDS: Readonly<Record<string, readonly Option[]>> = {
  serve: ['host', 'port', 'log-format', 'generate-key', 'scripted-model'],
  key: [],
  demo: [],
  'scripted-model': ['port'],
  help: [],
}

const LOG_FORMATS = ['json', 'pretty']
const MAX_PORT = 65_535

/** Throws a `UsageError`. */
export function readArguments(args: string[]): Invocation {
  const given = givenOptions(args)
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
  const [name, ...rest] = positionals
  if (values.help || name === 'help') return { name: 'help' }
  if (values.version) return { name: 'version' }
  checkCommand(name, given)
  checkValues(values)
  if (name === 'scripted-model') return { name, port: values.port, script: onlyOne(rest) }
  if (rest[0] !== undefined) throw new UsageError(`${rest[0]} is one word too many.`)
  if (name === 'demo' || name === 'key') return { name }
  const { host, port, 'log-format': logFormat } = values
  const flags = { generateKey: values['generate-key'], scriptedModel: values['scripted-model'] }
  return { name: 'serve', host, port, logFormat, ...flags }
}

/** The names of the options, each of which exists and has a value exactly when it takes one. */
function givenOptions(args: string[]): string[] {
  const { tokens } = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: false, tokens: true })
  const options = tokens.filter((token) => token.kind === 'option')
  for (const { name, rawName, value, inlineValue } of options) {
    if (!isOption(name)) throw new UsageError(`there is no option ${rawName}${suggest(name)}`)
    const takesValue = OPTIONS[name].type === 'string'
    if (takesValue && (!value || (!inlineValue && value.startsWith('-'))))
      throw new UsageError(`${rawName} needs a value.`)
    if (!takesValue && value !== undefined) throw new UsageError(`${rawName} takes no value.`)
  }
  return options.map(({ name }) => name)
}

const isOption = (name: string): name is Option => Object.hasOwn(OPTIONS, name)

function suggest(option: string): string {
  const nearest = nearestName(option, Object.keys(OPTIONS))
  return nearest === undefined ? '.' : `; did you mean --${nearest}?`
}

function checkCommand(name: string | undefined, given: readonly string[]): void {
  if (name === undefined) throw new UsageError('say what to do: serve or demo.')
  const options = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (options === undefined) {
    const nearest = nearestName(name, Object.keys(COMMANDS))
    throw new UsageError(`there is no command ${name}${nearest === undefined ? '.' : `; did you mean ${nearest}?`}`)
  }
  const other = given.find((option) => !options.some((known) => known === option))
  if (other !== undefined) throw new UsageError(`${name} has no option --${other}.`)
}

function checkValues({ port, 'log-format': format }: { port?: string; 'log-format'?: string }): void {
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= MAX_PORT))
    throw new UsageError(`--port ${port} is not a port; give a number from 0 to ${MAX_PORT}.`)
  if (format !== undefined && !LOG_FORMATS.includes(format))
    throw new UsageError(`--log-format ${format} does not exist; use ${LOG_FORMATS.join(' or ')}.`)
}

function onlyOne([first, second]: readonly string[]): string | undefined {
  if (second !== undefined) throw new UsageError(`${second} is one word too many.`)
  return first
}

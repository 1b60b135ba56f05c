/** Writes the help texts from the tables of commands and options. */
import type { CommandName } from './subcommands.ts'
import { COMMAND_NAMES, commandNamed } from './subcommands.ts'
import type { OptionName } from './options.ts'
import { optionNamed } from './options.ts'

const PROGRAM = 'agent-server'
/** Columns. */
const WIDTH = 80
const INDENT = 2

export function helpOf(command: CommandName | undefined): string {
  return command === undefined ? overview() : commandHelp(command)
}

function overview(): string {
  const width = Math.max(...COMMAND_NAMES.map((name) => name.length))
  const rows = COMMAND_NAMES.map((name) => row(name, width, commandNamed(name).about))
  return `agent-server: AI agents on a terminal, and behind REST and Server-Sent Events

${usageLines('chat')}
  agent-server COMMAND [OPTIONS]

Commands:
${rows.join('\n')}

agent-server COMMAND --help explains one of them. -v or --version prints the
version. Settings of the server are environment variables;
docs/configuration.md lists them.
`
}

function commandHelp(name: CommandName): string {
  const { about, details = [], options } = commandNamed(name)
  const all: readonly OptionName[] = [...options, 'help']
  const width = Math.max(...all.map((option) => formOf(option).length).filter((length) => length <= MAX_FORM))
  const rows = all.map((option) => row(formOf(option), width, optionNamed(option).about))
  const paragraphs = [about, ...details].map((text) => wrap(text, 0))
  return `${usageLines(name)}\n\n${paragraphs.join('\n\n')}\n\nOptions:\n${rows.join('\n')}\n`
}

const usageLines = (name: CommandName): string =>
  commandNamed(name)
    .usage.map((line) => `  ${PROGRAM} ${line}`)
    .join('\n')

function formOf(name: OptionName): string {
  const { short, value } = optionNamed(name)
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
}

/** A longer form has its description on the next line. */
const MAX_FORM = 24

function row(term: string, width: number, about: string): string {
  const start = INDENT + width + 2
  const text = wrap(about, start)
  return term.length > width ? `${' '.repeat(INDENT)}${term}\n${text}` : `  ${term.padEnd(width)}  ${text.trimStart()}`
}

function wrap(text: string, indent: number): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    const joinedLine = last === '' ? word : `${last} ${word}`
    if (indent + joinedLine.length <= WIDTH || last === '') lines[lines.length - 1] = joinedLine
    else lines.push(word)
  }
  return lines.map((line) => ' '.repeat(indent) + line).join('\n')
}

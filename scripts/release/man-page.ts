/** Writes the manual page agent-server(1) from the tables of the command line, as help and completion are. */
import { COMMAND_NAMES, commandNamed } from '../../src/cli/command-line/subcommands.ts'
import type { OptionName } from '../../src/cli/command-line/options.ts'
import { optionNamed } from '../../src/cli/command-line/options.ts'

/** The text of the page in the man macros. `date`: of the release. */
export function manPage(version: string, date: Date): string {
  const commands = COMMAND_NAMES.map((name) => ({ name, ...commandNamed(name) }))
  const options = new Set<OptionName>([...commands.flatMap((command) => command.options), 'version', 'help'])
  return [
    `.TH AGENT\\-SERVER 1 ${date.toISOString().slice(0, 10)} "agent\\-server ${version}" "User Commands"`,
    '.SH NAME',
    'agent\\-server \\- AI agents on a terminal, and behind REST and Server\\-Sent Events',
    '.SH SYNOPSIS',
    ...commands.flatMap(({ usage }) => usage.flatMap((line) => [`.B agent\\-server`, escaped(line), '.br'])),
    '.SH COMMANDS',
    ...commands.flatMap((command) => commandLines(command)),
    '.SH OPTIONS',
    ...[...options].flatMap((option) => optionLines(option)),
    '.SH ENVIRONMENT',
    'Settings of the server are environment variables, which docs/configuration.md lists.',
    '.SH FILES',
    '.TP',
    escaped('~/.openhands/settings_sdk.json'),
    'Settings of the chat and of answers for scripts.',
    '',
  ].join('\n')
}

type Command = { readonly name: string; readonly about: string; readonly details?: readonly string[] }

function commandLines({ name, about, details = [] }: Command): string[] {
  return ['.TP', `.B ${escaped(name)}`, escaped(about), ...details.flatMap((text) => ['.IP', escaped(text)])]
}

function optionLines(name: OptionName): string[] {
  const { short, value, about } = optionNamed(name)
  const names = [...(short === undefined ? [] : [`-${short}`]), `--${name}`].map((form) => `\\fB${escaped(form)}\\fR`)
  return ['.TP', `${names.join(', ')}${value === undefined ? '' : ` \\fI${escaped(value)}\\fR`}`, escaped(about)]
}

/** Text of a line: roff reads backslashes, hyphens, and dots and quotes at the beginning of a line. */
const escaped = (text: string) =>
  text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replace(/^\./, '\\&.')

/** The completion script of zsh: for `source`, or as the file `_agent-server` in `fpath`. */
import type { CommandName } from '../command-line/subcommands.ts'
import { COMMAND_NAMES, commandNamed } from '../command-line/subcommands.ts'
import type { OptionName } from '../command-line/options.ts'
import { optionNamed } from '../command-line/options.ts'
import { formsOf, optionsOf, wordsOf } from './words.ts'

export function zshScript(): string {
  return `#compdef agent-server
# Completion of agent-server in zsh.
_agent_server() {
  local -a commands
  local state line
  typeset -A opt_args
  commands=(
${COMMAND_NAMES.map((name) => `    ${quote(`${name}:${commandNamed(name).about}`)}`).join('\n')}
  )
  local command=\${words[(r)${COMMAND_NAMES.join('|')}]}
  case $command in
${COMMAND_NAMES.map(caseOf).join('\n')}
    *)
      _arguments ${quote('1:command:->command')} ${argumentsOf('chat')} && return
      [[ $state != command ]] || _describe command commands ;;
  esac
}
if [ "$funcstack[1]" = "_agent_server" ] || [ "$funcstack[1]" = "_agent-server" ]; then
  _agent_server "$@"
else
  compdef _agent_server agent-server
fi
`
}

function caseOf(name: CommandName): string {
  const words = wordsOf(name)
  const rest = words.length > 0 ? ` ${quote(`2:word:(${words.join(' ')})`)}` : ''
  return `    ${name}) _arguments ${quote('1:command: ')}${rest} ${argumentsOf(name)} ;;`
}

/** Ids, which no shell knows, come after the words of a command; after others come files. */
const argumentsOf = (name: CommandName): string =>
  [...optionsOf(name).flatMap(specsOf), quote(wordsOf(name).length > 0 ? '*: : ' : '*:file:_files')].join(' ')

function specsOf(option: OptionName): string[] {
  const { type, multiple, about, value = '', choices, completes } = optionNamed(option)
  const action = choices
    ? `(${choices.join(' ')})`
    : completes === 'files'
      ? '_files'
      : completes === 'directories'
        ? '_directories'
        : ' '
  const argument = type === 'string' ? `:${escape(value)}:${action}` : ''
  return formsOf(option).map((form) => quote(`${multiple ? '*' : ''}${form}[${escape(about)}]${argument}`))
}

const escape = (text: string): string => text.replaceAll(/[[\]:\\]/g, String.raw`\$&`)
const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

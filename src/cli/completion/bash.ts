/** The completion script of bash 3.2 and later, without the package bash-completion. */
import { COMMAND_NAMES } from '../command-line/subcommands.ts'
import { formsOf, optionsOf, optionsThatName, optionsWithChoices, optionsWithOtherValues, wordsOf } from './words.ts'

export function bashScript(): string {
  return `# Completion of agent-server in bash.
_agent_server() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command= word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) ;;
      ${COMMAND_NAMES.join('|')}) command=$word; break ;;
    esac
  done
  case $previous in
${valueCases().join('\n')}
  esac
  case $current in
    -*)
      case $command in
${COMMAND_NAMES.map((name) => `        ${caseOf(name)}) ${reply(optionsOf(name).flatMap(formsOf))} ;;`).join('\n')}
      esac ;;
    *)
      case $command in
        '') ${reply(COMMAND_NAMES)} ;;
${COMMAND_NAMES.filter((name) => wordsOf(name).length > 0)
  .map((name) => `        ${name}) [ "$previous" != ${name} ] || ${reply(wordsOf(name))} ;;`)
  .join('\n')}
        *) COMPREPLY=($(compgen -f -- "$current")) ;;
      esac ;;
  esac
}
complete -o filenames -F _agent_server agent-server
`
}

/** The chat is meant if there is no command. */
const caseOf = (name: string): string => (name === 'chat' ? `''|chat` : name)

function valueCases(): string[] {
  const after = (forms: readonly string[], action: string) => `    ${forms.join('|')}) ${action}; return ;;`
  return [
    ...optionsWithChoices().map(({ option, choices }) => after(formsOf(option), reply(choices))),
    after(optionsThatName('files').flatMap(formsOf), 'COMPREPLY=($(compgen -f -- "$current"))'),
    after(optionsThatName('directories').flatMap(formsOf), 'COMPREPLY=($(compgen -d -- "$current"))'),
    after(optionsWithOtherValues().flatMap(formsOf), 'COMPREPLY=()'),
  ]
}

const reply = (words: readonly string[]): string => `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current"))`

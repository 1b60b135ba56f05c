/** The completion script of fish. */
import type { CommandName } from '../command-line/subcommands.ts'
import { COMMAND_NAMES, commandNamed } from '../command-line/subcommands.ts'
import type { OptionName } from '../command-line/options.ts'
import { optionNamed } from '../command-line/options.ts'
import { optionsOf, wordsOf } from './words.ts'

export function fishScript(): string {
  const commands = COMMAND_NAMES.map(
    (name) => `${START} -n ${NONE} -f -a ${name} -d ${quote(commandNamed(name).about)}`,
  )
  return `# Completion of agent-server in fish.
${[...commands, ...COMMAND_NAMES.flatMap(linesOf)].join('\n')}
`
}

const START = 'complete -c agent-server'
/** The function `__fish_use_subcommand` would take the value of an option for a command. */
const NONE = `'not __fish_seen_subcommand_from ${COMMAND_NAMES.join(' ')}'`

function linesOf(name: CommandName): string[] {
  const seenCondition = `'__fish_seen_subcommand_from ${name}'`
  const words = wordsOf(name)
  const others = words.filter((word) => word !== name).join(' ')
  const isNext = quote(`__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${others}`)
  const after =
    words.length > 0 ? [`${START} -n ${seenCondition} -f`, `${START} -n ${isNext} -a ${quote(words.join(' '))}`] : []
  const conditions = name === 'chat' ? [seenCondition, NONE] : [seenCondition]
  return [...after, ...conditions.flatMap((when) => optionsOf(name).map((option) => lineOf(option, when)))]
}

const VALUES = { files: ' -r -F', directories: " -x -a '(__fish_complete_directories)'", nothing: ' -x' } as const

function lineOf(option: OptionName, when: string): string {
  const { short, type, choices, completes, about } = optionNamed(option)
  const value =
    type === 'boolean' ? '' : choices ? ` -x -a ${quote(choices.join(' '))}` : VALUES[completes ?? 'nothing']
  const letter = short === undefined ? '' : ` -s ${short}`
  return `${START} -n ${when} -l ${option}${letter}${value} -d ${quote(about)}`
}

const quote = (text: string): string => `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`

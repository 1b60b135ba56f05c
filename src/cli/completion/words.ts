/** What can be completed: commands, the words after them, their options, and the values of options. */
import type { CommandName } from '../command-line/subcommands.ts'
import { COMMAND_NAMES, commandNamed } from '../command-line/subcommands.ts'
import type { OptionName } from '../command-line/options.ts'
import { OPTIONS, optionNamed } from '../command-line/options.ts'

export const optionsOf = (command: CommandName): readonly OptionName[] => [...commandNamed(command).options, 'help']

/** The words that can follow the name of a command. */
export function wordsOf(command: CommandName): readonly string[] {
  return command === 'help' ? COMMAND_NAMES : (commandNamed(command).words ?? [])
}

/** `--name` and `-n`. */
export function formsOf(option: OptionName): readonly string[] {
  const { short } = optionNamed(option)
  return short === undefined ? [`--${option}`] : [`--${option}`, `-${short}`]
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const ALL = Object.keys(OPTIONS) as OptionName[]

export const optionsWithChoices = () =>
  ALL.flatMap((option) => {
    const { choices } = optionNamed(option)
    return choices ? [{ option, choices }] : []
  })

export const optionsThatName = (kind: 'files' | 'directories'): OptionName[] =>
  ALL.filter((option) => optionNamed(option).completes === kind)

/** Options with a value that no shell can know. */
export const optionsWithOtherValues = (): OptionName[] =>
  ALL.filter((option) => {
    const { type, choices, completes } = optionNamed(option)
    return type === 'string' && !choices && !completes
  })

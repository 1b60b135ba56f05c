/** Finds where the options of a wrapper end and the command that it runs begins. */
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf } from './shell-word.ts'

/** `flags` have no value; `valued` have one, attached or as the next word. `operands` come before the command. */
export type Options = { readonly flags: RegExp; readonly valued: RegExp; readonly operands?: number }

/**
 * Returns the index of the first word that is not an option, or is behind the operands; undefined if that is uncertain. A
 * word that may become several ones, or none, makes it uncertain: in `timeout 5$x ls`, `x` may hold ` rm`.
 */
export function skipOptions(words: readonly ShellWord[], { flags, valued, operands = 0 }: Options): number | undefined {
  const end = endOfOptions(words, { flags, valued })
  const start = end === undefined ? undefined : end + operands
  return start === undefined || words.slice(0, start).some(({ isMany }) => isMany) ? undefined : start
}

function endOfOptions(words: readonly ShellWord[], { flags, valued }: Options): number | undefined {
  for (let at = 0; at < words.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const word = words[at]!
    const start = startOf(word)
    const text = literalOf(word)
    if (start === '' || word.isMany) return start !== '' && !start.startsWith('-') ? at : undefined
    if (!start.startsWith('-') || start === '-') return at
    if (text === '--') return at + 1
    if (text !== undefined && flags.test(text)) continue
    const option = valued.exec(start)?.[0]
    if (option === undefined || word.isMany) return undefined
    if (text === option) at += 1
    else if (option.startsWith('--') && start[option.length] !== '=') return undefined
  }
  return words.length
}

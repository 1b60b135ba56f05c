/** Options of the shell: only those listed here leave it as it is how command lines are read and what names stand for. */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'
import type { UnwrappedCommand } from './unwrapped.ts'
import { hides, PLAIN } from './unwrapped.ts'

/** The letters lack `-k`, which takes assignments out of the arguments, and others that concern how a text is read. */
const LETTERS = 'abefhmuvxBCET'
const NAMED =
  /^(allexport|braceexpand|emacs|errexit|errtrace|functrace|hashall|ignoreeof|monitor|noclobber|noglob|nolog|notify|nounset|physical|pipefail|verbose|vi|xtrace)$/
const SHOPT =
  /^(checkhash|checkjobs|checkwinsize|cmdhist|failglob|globstar|histappend|huponexit|inherit_errexit|lastpipe|nocasematch|nullglob|xpg_echo)$/

/** The options that are off by default: without them, names and lines are read as this server reads them. */
const BETTER_OFF = /^(dotglob|expand_aliases|extglob|nocaseglob)$/

const CHANGES = hides('it sets an option of the shell that changes how commands are read')

export const isPlainOption = (name: string): boolean => NAMED.test(name) || SHOPT.test(name)

/** The letters of one word, as in `-eu`. */
export const arePlainLetters = (letters: string): boolean =>
  Array.from(letters).every((letter) => LETTERS.includes(letter))

/** `set -euo pipefail`. What is not an option sets positional parameters, which are not known anyway. */
export function readSet(words: readonly ShellWord[]): UnwrappedCommand {
  for (let at = 0; at < words.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const text = literalOf(words[at]!)
    if (text === undefined) return CHANGES
    if (text === '--' || text === '-' || !/^[-+]/.test(text)) return PLAIN
    const takesName = text.endsWith('o')
    if (!arePlainLetters(takesName ? text.slice(1, -1) : text.slice(1))) return CHANGES
    if (!takesName) continue
    at += 1
    const name = words[at]
    if (name && !NAMED.test(literalOf(name) ?? '')) return CHANGES
  }
  return PLAIN
}

export function readShopt(words: readonly ShellWord[]): UnwrappedCommand {
  const texts = words.map((word) => literalOf(word) ?? '?')
  const options = texts.filter((text) => text.startsWith('-')).join('')
  const names = texts.filter((text) => !text.startsWith('-'))
  if (!/[su]/.test(options)) return names.includes('?') ? CHANGES : PLAIN
  const isPlain = (name: string) => isPlainOption(name) || (!options.includes('s') && BETTER_OFF.test(name))
  return /^[-supqo]*$/.test(options) && names.every(isPlain) ? PLAIN : CHANGES
}

/** A command without the options that are between the words of a rule: `git -C . push` is a `git push`. */
import type { ShellWord } from '../shell/shell-word.ts'
import { literalOf, literalWord, startOf } from '../shell/shell-word.ts'

export type ShortenedCommand = {
  readonly words: readonly ShellWord[]
  /** If false, the last word of the rule may be the value of an option: `npm --prefix publish test`. */
  readonly isCertain: boolean
}

/** Options without a value, of programs with subcommands. */
const FLAG =
  /^(-[PpqsvyhV]|--(no-pager|paginate|bare|silent|quiet|verbose|yes|user|system|global|json|debug|no-color|force|offline|dry-run|no-input|no-optional-locks|literal-pathspecs|no-replace-objects|workspaces|frozen|locked|insecure|help|version))$/

const isOption = (word: ShellWord): boolean => /^[-+]./.test(startOf(word))
const isAssignment = (word: ShellWord): boolean => /^[A-Za-z_]\w*=/.test(startOf(word))

/**
 * Returns a command for each way in which `names`, the words of the rule, are among `words` with only options in
 * between.
 */
export function withoutOptions(names: readonly string[], words: readonly ShellWord[]): readonly ShortenedCommand[] {
  const [program, ...rest] = names
  const first = words[0] && literalOf(words[0])
  if (program === undefined || rest.length === 0 || first === undefined) return []
  if (first !== program && !first.endsWith(`/${program}`)) return []
  const foundCommands: ShortenedCommand[] = []
  // How many of the rule's words were found, and whether it is certain that none of them is the value of an option.
  let reachedWords = new Map([[0, true]])
  for (let at = 1; at < words.length && reachedWords.size > 0; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const [word, before] = [words[at]!, words[at - 1]]
    const mayBeValue = before !== undefined && isOption(before) && !startOf(before).includes('=')
    const next = new Map<number, boolean>()
    const text = literalOf(word)
    for (const [count, isCertain] of reachedWords) {
      if (isOption(word) || mayBeValue || isAssignment(word)) next.set(count, isCertain)
      if (text !== rest[count]) continue
      const isName = isCertain && (!mayBeValue || startOf(before).startsWith('+') || FLAG.test(startOf(before)))
      if (count + 1 < rest.length) next.set(count + 1, isName || (next.get(count + 1) ?? false))
      else foundCommands.push({ words: [...names.map(literalWord), ...words.slice(at + 1)], isCertain: isName })
    }
    reachedWords = next
  }
  return foundCommands
}

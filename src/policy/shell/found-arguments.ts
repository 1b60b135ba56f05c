/** `xargs` and `find`: they run a command with arguments that are found while they run. */
import { unwrapLauncher } from './launchers.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf, UNKNOWN_WORD } from './shell-word.ts'
import type { Options } from './skip-options.ts'
import { skipOptions } from './skip-options.ts'
import type { UnwrappedCommand, WrappedText } from './unwrapped.ts'
import { PLAIN } from './unwrapped.ts'

const XARGS: Options = {
  // A value that may be left out is never the next word.
  flags: /^(-[0rtxo]+|--(null|no-run-if-empty|verbose|exit|open-tty)|--(max-lines|eof|replace)(=[^]*)?)$/,
  valued: /^(-[nPLsdEI]|--max-args|--max-procs|--max-chars|--delimiter)/,
}

/** What it reads is added to the arguments, or takes the place of a text in them. */
export function unwrapXargs(words: readonly ShellWord[]): UnwrappedCommand {
  const after = skipOptions(words, XARGS)
  if (after === undefined) return { ...unwrapLauncher(words), hidden: 'the options of xargs are not known' }
  const marks = marksOf(words.slice(0, after))
  const [name, ...rest] = words.slice(after)
  if (!name) return PLAIN
  // Nothing of the command is certain if a text is replaced, its name included.
  const inner = marks
    ? [name, ...rest].map((word) =>
        marks.some((mark) => literalOf(word)?.includes(mark) ?? true) ? UNKNOWN_WORD : word,
      )
    : [name, ...rest, UNKNOWN_WORD]
  return { kind: 'constant', runs: [{ words: inner }], variables: [] }
}

/** All texts of the options that xargs may replace: which of several `-I` counts is not looked into. */
function marksOf(options: readonly ShellWord[]): readonly string[] | undefined {
  const texts = options.map((option) => literalOf(option) ?? '')
  if (!texts.some((text) => /^(-I|--replace)/.test(text))) return undefined
  return ['{}', ...texts.flatMap((text) => [text, text.replace(/^(-I|--replace=?)/, '')])].filter((text) => text !== '')
}

/** The value of a variable becomes several words, and any of them may be an option. */
const isSplit = ({ isMany, pieces }: ShellWord): boolean =>
  isMany && pieces.some((piece) => 'hole' in piece && piece.hole === 'any')

/** The words after `-exec` up to `;` or `+`; without an end, all of them. */
export function unwrapFind(words: readonly ShellWord[]): UnwrappedCommand {
  const runs: WrappedText[] = []
  let at = 0
  while (at < words.length) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const word = words[at]!
    const text = literalOf(word)
    at += 1
    if (text === undefined && (!/^[^-]/.test(startOf(word)) || isSplit(word)))
      return { ...PLAIN, runs, hidden: 'an unknown argument of find may run a command' }
    if (!/^(-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(text ?? '')) continue
    const length = words.slice(at).findIndex((next) => [';', '+'].includes(literalOf(next) ?? ''))
    const inner = words.slice(at, length < 0 ? undefined : at + length)
    const filledWords = inner.map((next) => (/[{}]/.test(literalOf(next) ?? '{') ? UNKNOWN_WORD : next))
    runs.push({ words: [...filledWords, UNKNOWN_WORD], elsewhere: text !== '-exec' && text !== '-ok' })
    at += inner.length
  }
  return { kind: runs.length ? 'also' : undefined, runs, variables: [] }
}

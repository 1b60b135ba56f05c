/** A path that a command reaches, and what of a word may be one. */
import type { ShellWord } from './shell/shell-word.ts'
import { literalWord, startOf, wordAfter } from './shell/shell-word.ts'

/** What a command does with everything below a directory. */
export type Depth = {
  /** It shows what is in the files, or copies it to where a rule does not see it. */
  readonly reads?: true
  readonly changes?: true
  /** It reaches files that git tracks, and no others. */
  readonly isTracked?: true
  /** It reaches all of the repository in any directory of it; `outside`: only what is not below the directory. */
  readonly ofRepository?: 'all' | 'outside'
  /** It reaches what links below lead to. */
  readonly followsLinks?: boolean
  /** It does not reach those whose names begin with a dot. */
  readonly skipsHidden?: boolean
  /** It reaches those with such a name, and no others. */
  readonly includes?: readonly string[] | undefined
}

export type CommandPath = {
  readonly word: ShellWord
  /** Absent: it only reaches the path itself. */
  readonly depth?: Depth
  /** It shows that a file exists, and what is in a directory. */
  readonly showsNames?: true
  /** The path is in a text that may be a script. */
  readonly isGuess?: true
}

/** The directory in which the command runs. */
export const HERE: ShellWord = literalWord('.')

/** A path may follow these: `if=file`, `@file`, `host:file`. */
const MARKS = /[=@:,]/g

/** The word, and what follows a mark or an option's letter in it. */
export function pathsIn(word: ShellWord): ShellWord[] {
  const start = startOf(word)
  const marks = [...start.matchAll(MARKS)].slice(0, 4).map(({ index }) => wordAfter(word, index + 1))
  if (!start.startsWith('-')) return [word, ...marks.map(withHome)]
  // `-ofile`, and `-xzf/file` with several letters.
  const attachedWords = start.startsWith('--') ? [] : [wordAfter(word, 2)].filter(({ pieces }) => pieces.length > 0)
  const slash = start.search(/[/~]/)
  const rootedWords = slash < 0 ? [] : [wordAfter(word, slash)]
  return [...marks, ...attachedWords, ...rootedWords].map(withHome)
}

/** Programs such as `dd` and shells expand a `~` there themselves. */
export const withHome = (word: ShellWord): ShellWord =>
  /^~(\/|$)/.test(startOf(word)) ? { ...word, hasTilde: true } : word

/** Which arguments of a command may be paths, and which commands reach what is below a directory. */
import type { SimpleCommand } from './shell/command-line.ts'
import { readingOf } from './shell/read-only.ts'
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf, wordAfter } from './shell/shell-word.ts'

export type CommandPath = {
  readonly word: ShellWord
  /** The command also reaches what is below it. */
  readonly isDeep: boolean
}

const DEEP = new Set('7z ack ag diff du fd fdfind find git mv rg rsync tar tree zip'.split(' '))
const DEEP_BY_OPTION = new Set('chgrp chmod chown cp egrep fgrep grep ls rm scp'.split(' '))
const DEEP_OPTION = /^(-[^-]*[rRad]|--(recursive|archive|dereference-recursive))/

/** A path may follow these: `if=file`, `@file`, `host:file`. */
const MARKS = /[=@:,]/g

/** The same for all rules. */
const found = new WeakMap<SimpleCommand, readonly CommandPath[]>()

export function pathsOf(command: SimpleCommand): readonly CommandPath[] {
  let paths = found.get(command)
  if (!paths) found.set(command, (paths = findPaths(command)))
  return paths
}

function findPaths({ words, wraps }: SimpleCommand): CommandPath[] {
  const [first, ...rest] = words
  // Its arguments are those of what it runs.
  if (!first || wraps?.kind === 'constant') return []
  const reading = readingOf(words)
  if (reading && reading.paths.length === 0 && !reading.readsDirectory) return []
  const isDeep = isDeepCommand(first, rest)
  const named = rest.flatMap(pathsIn).map((word) => ({ word, isDeep }))
  return isDeep ? [...named, { word: literalWord('.'), isDeep }] : named
}

function isDeepCommand(first: ShellWord, rest: readonly ShellWord[]): boolean {
  const start = literalOf(first) ?? ''
  const name = start.slice(start.lastIndexOf('/') + 1)
  return DEEP.has(name) || (DEEP_BY_OPTION.has(name) && rest.some((word) => DEEP_OPTION.test(startOf(word))))
}

/** The word, and what follows a mark or an option's letter in it. */
function pathsIn(word: ShellWord): ShellWord[] {
  const start = startOf(word)
  const marks = [...start.matchAll(MARKS)].slice(0, 4).map(({ index }) => wordAfter(word, index + 1))
  if (!start.startsWith('-')) return [word, ...marks.map(withHome)]
  const slash = start.search(/[/~]/)
  // `-ofile`, and `-xzf/file` with several letters.
  const attached = start.startsWith('--') || start.length < 3 ? [] : [wordAfter(word, 2)]
  return [...[...marks, ...attached].map(withHome), ...(slash > 0 ? [withHome(wordAfter(word, slash))] : [])]
}

/** Programs such as `dd` and shells expand a `~` there themselves. */
const withHome = (word: ShellWord): ShellWord => (/^~(\/|$)/.test(startOf(word)) ? { ...word, hasTilde: true } : word)

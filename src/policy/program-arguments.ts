/** Commands and files in the arguments of programs that may run commands, or read files, which their arguments name. */
import { configuresProgram } from './git/subcommand.ts'
import type { CommandPattern } from './rules/command-pattern.ts'
import { matchCommand } from './rules/command-pattern.ts'
import type { Effort } from './rules/comparison.ts'
import { STAR } from './rules/globs.ts'
import type { SimpleCommand } from './shell/command-line.ts'
import { readingOf } from './shell/read-only.ts'
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord } from './shell/shell-word.ts'
import { lazilyForEach } from '../lib/lazily.ts'

/** They never run what their arguments say, apart from what is looked into elsewhere. Their arguments are data. */
const TAKE_DATA = new Set(
  `ack ag black brew bun cargo cat cd chgrp chmod chown cmp cp curl cut date declare diff dirname du echo egrep eslint
  export false fgrep gh git glab grep head hub install jest jq kill killall ln local ls mkdir mktemp mv mypy npm pgrep
  pip pip3 pkill playwright pnpm prettier printf pyright pytest readlink readonly realpath rm rmdir ruff seq set shred sleep
  stat systemctl tail tee test touch tr true tsc type typeset unalias unlink unset unzip vitest wc which yarn yq [ :`.split(
    /\s+/,
  ),
)

/** Further texts are not compared one by one. */
const MAX_TEXTS = 2000

/** The words in the arguments of a program that may do what they say; texts such as scripts are taken apart. */
export const argumentTexts = lazilyForEach(readTexts)

function readTexts({ words, wraps }: SimpleCommand): readonly string[] {
  const [first, ...rest] = words
  const name = first && literalOf(first)
  if (name === undefined || wraps || readingOf(words)) return []
  if (TAKE_DATA.has(baseOf(name)) && !configuresProgram(words)) return []
  return textsIn(rest)
}

/** The same for all rules. */
export const textsIn = lazilyForEach(split)

function split(words: readonly ShellWord[]): readonly string[] {
  const texts = words.map(({ pieces }) => pieces.map((piece) => ('text' in piece ? piece.text : ' ')).join(''))
  return texts.flatMap((text) => text.match(/[\w./~+@%:-]+/g) ?? []).slice(0, MAX_TEXTS)
}

const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Bounds for one command: the directories that it may begin in, and its words. */
const MAX_PLACES = 20
const MAX_WORDS = 50

export function namedIn(texts: readonly string[], pattern: CommandPattern, effort: Effort): boolean {
  const end = pattern.symbols.findIndex((symbol) => symbol === STAR || symbol === '\0')
  const start = pattern.symbols.slice(0, end < 0 ? undefined : end).join('')
  if (texts.length === 0 || start === '') return false
  const isWhole = pattern.literalWords.length > 0
  let count = 0
  for (const [at, text] of texts.entries()) {
    const name = baseOf(text)
    if (isWhole ? name !== start : !name.startsWith(start)) continue
    if ((count += 1) > MAX_PLACES) return true
    const words = [name, ...texts.slice(at + 1, at + MAX_WORDS)].map(literalWord)
    if (matchCommand(pattern, words, effort) !== 'no') return true
  }
  return texts.length >= MAX_TEXTS
}

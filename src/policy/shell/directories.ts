/** Finds where the commands of a line may run: what `cd` and `pushd` lead to. */
import { normalize } from 'node:path'
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'

/** Undefined: anywhere. A `cd` may fail, so the directories before it stay. */
export type Directories = readonly string[] | undefined

const MAX_DIRECTORIES = 16

export function directoriesAfter(
  words: readonly ShellWord[],
  before: Directories,
  homes: readonly string[],
): Directories {
  const [name, ...rest] = words
  const command = name && literalOf(name)
  if (command === undefined) return name ? before : undefined
  if (command === 'popd') return undefined
  if ((command !== 'cd' && command !== 'pushd') || before === undefined) return before
  const operands = rest.filter((word) => !['-P', '-L', '-e', '--', '-n'].includes(literalOf(word) ?? ''))
  if (operands.length === 0) return command === 'cd' ? boundDirectories([...before, ...homes]) : undefined
  const [target] = operands
  const text = target && literalOf(target)
  if (operands.length > 1 || text === undefined || target?.isMany || /^[-+]/.test(text)) return undefined
  const places = placesOf(text, target?.hasTilde ?? false, before, homes)
  // Bash enters `link/..` by its name, and with the option `physical` where the link leads.
  return boundDirectories([
    ...before,
    ...places.flatMap((place) => (place.includes('..') ? [normalize(place), place] : [place])),
  ])
}

/** A path as the kernel gets it, from each directory that it may start at; `..` stays in it. */
export function placesOf(
  path: string,
  hasTilde: boolean,
  cwds: readonly string[],
  homes: readonly string[],
): readonly string[] {
  if (hasTilde) return homes.map((home) => `${home}${path.slice(1)}`)
  if (path.startsWith('/')) return [path]
  return cwds.map((cwd) => `${cwd}/${path}`)
}

function boundDirectories(directories: readonly string[]): Directories {
  const each = [...new Set(directories)]
  return each.length > MAX_DIRECTORIES ? undefined : each
}

/** Finds the arguments of a command that may be paths, and the commands that reach what is below a directory. */
import { posix } from 'node:path'
import { gitPaths } from './git-paths.ts'
import type { CommandPath, Depth } from './path-words.ts'
import { HERE, pathsIn, withHome } from './path-words.ts'
import { argumentTexts } from './program-arguments.ts'
import { searchOf } from './search-arguments.ts'
import type { SimpleCommand } from './shell/command-line.ts'
import { readingOf } from './shell/read-only.ts'
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf, UNKNOWN_WORD } from './shell/shell-word.ts'
import { isStream } from './shell/command-line.ts'
import { lazilyForEach } from '../lib/lazily.ts'

const READS: Depth = { reads: true }
const CHANGES: Depth = { changes: true }
const BOTH: Depth = { reads: true, changes: true }

/** What they show of a file is not its content. */
const SHOW_NAMES = new Set('[ basename dirname du fd fdfind find ls readlink realpath stat test tree'.split(' '))
/** Options with which they show what is in a file as names, or write a file. */
const NAMES_IN_FILE = /^(--(fi|from|gitf|infof|output)|-[a-zA-Z]*o)/
/** Builtins whose arguments are names and values of variables. */
const SET_VARIABLES = new Set('declare export local readonly typeset unset'.split(' '))
const SEARCHES = new Set(
  'ack ag bzgrep egrep fgrep grep pcre2grep pcregrep pt rg rgrep sift ug ugrep xzgrep zgrep'.split(' '),
)
const COPIES = new Set('cp mv rsync scp'.split(' '))

/** Options and commands that take files out of an archive, and that put files in. With neither it puts in, or it lists. */
type Archiver = { readonly takesOut?: RegExp; readonly putsIn?: RegExp }
const TAR: Archiver = { takesOut: /^(-?[a-eg-zA-Z]*x|--(ext|ge))/, putsIn: /^(-?[a-zA-Z]*[cruA]|--(cr|ca|con|ap|up))/ }
const SEVEN_ZIP: Archiver = { takesOut: /^[ex]$/ }
const ARCHIVERS: Readonly<Record<string, Archiver>> = {
  '7z': SEVEN_ZIP,
  '7za': SEVEN_ZIP,
  bsdtar: TAR,
  cpio: { takesOut: /^(-[a-zA-Z]*[ip]|--(ex|pa))/, putsIn: /^(-[a-zA-Z]*[op]|--(cr|pa))/ },
  gtar: TAR,
  pax: { takesOut: /^-[a-zA-Z]*r/, putsIn: /^-[a-zA-Z]*w/ },
  star: TAR,
  tar: TAR,
  unzip: { takesOut: /^/ },
  zip: {},
}
const CONTAINERS = new Set(['docker', 'kubectl', 'nerdctl', 'oc', 'podman'])
const CHANGES_BELOW = new Set('chgrp chmod chown rm shred'.split(' '))
/** Options with which programs copy or pack what links lead to. */
const FOLLOWS = /^(-[a-zA-Z]*[Lk]|--(deref|copy-))/
const PACKS_TARGETS = /^-?[a-zA-Z]*h/
const FOLLOW_LINKS = new Set('7z 7za diff scp zip'.split(' '))
const RECURSIVE = /^(-[^-]*[rRad]|--(r|a|d))/

/** The same for all rules. */
export const pathsOf = lazilyForEach((command: SimpleCommand): readonly CommandPath[] =>
  findPaths(command).filter(({ word }) => !isStream(word)),
)

function findPaths(command: SimpleCommand): readonly CommandPath[] {
  const { words, wraps } = command
  const [first, ...rest] = words
  // Its arguments are those of what it runs.
  if (!first || wraps?.kind === 'constant') return []
  const start = literalOf(first) ?? ''
  const name = start.slice(start.lastIndexOf('/') + 1)
  if (SET_VARIABLES.has(name)) return []
  if (name === 'git') return gitPaths(rest)
  if (name === 'ln') return linkedPaths(rest)
  if (SEARCHES.has(name)) return searchedPaths(name, rest)
  // Its files are in a list.
  if (name === 'sort' && rest.some((word) => startOf(word).startsWith('--fil'))) return [{ word: UNKNOWN_WORD }]
  const namedPaths = rest.flatMap(pathsIn).map((word): CommandPath => ({ word }))
  if ((name === 'du' || name === 'tree') && rest.some((word) => NAMES_IN_FILE.test(startOf(word)))) return namedPaths
  if (SHOW_NAMES.has(name)) return shownNames(name, rest, namedPaths)
  const reading = readingOf(words)
  if (reading && reading.paths.length === 0 && !reading.readsDirectory) return []
  return [...deepenedPaths(name, rest, namedPaths), ...guessedPaths(command)]
}

function shownNames(
  name: string,
  rest: readonly ShellWord[],
  namedPaths: readonly CommandPath[],
): readonly CommandPath[] {
  const isDeleting = name === 'find' && rest.some((word) => /^-(delete|fprint|fls|files0)/.test(startOf(word)))
  if (!isDeleting) return namedPaths.map((path) => ({ ...path, showsNames: true }))
  return [...namedPaths, { word: HERE }].map((path) => ({ ...path, depth: CHANGES }))
}

/** What is below a link has another name behind it. The target of a symbolic link starts at the directory of the link. */
function linkedPaths(rest: readonly ShellWord[]): readonly CommandPath[] {
  const operands = rest.flatMap((word) => (startOf(word).startsWith('-') ? [] : [literalOf(word)]))
  const link = operands.at(-1)
  const texts = operands.flatMap((text) => {
    if (text === undefined || link === undefined || text.startsWith('/')) return []
    return [posix.normalize(`${link}/${text}`), posix.normalize(`${posix.dirname(link)}/${text}`)]
  })
  const isOfProcess = operands.some((text) => text !== undefined && /^\/(proc|dev)(\/|$)/.test(posix.normalize(text)))
  const words = [...rest.flatMap(pathsIn), ...texts.map(literalWord), ...(isOfProcess ? [UNKNOWN_WORD] : [])]
  return words.map((word) => ({ word, depth: BOTH }))
}

function searchedPaths(name: string, rest: readonly ShellWord[]): readonly CommandPath[] {
  const search = searchOf(name, rest)
  if (!search) {
    const isDeep = !/^[ef]?grep$/.test(name) || rest.some((word) => RECURSIVE.test(startOf(word)))
    const words = rest.flatMap(pathsIn)
    return isDeep
      ? [...words, HERE].map((word) => ({ word, depth: { ...READS, followsLinks: true } }))
      : words.map((word) => ({ word }))
  }
  const { paths, isRecursive, followsLinks, skipsHidden, includes } = search
  if (!isRecursive) return paths.map((word) => ({ word }))
  const depth = { ...READS, followsLinks, skipsHidden, includes }
  return (paths.length > 0 ? paths : [HERE]).map((word) => ({ word, depth }))
}

function deepenedPaths(
  name: string,
  rest: readonly ShellWord[],
  namedPaths: readonly CommandPath[],
): readonly CommandPath[] {
  const isRecursive = rest.some((word) => RECURSIVE.test(startOf(word)))
  const followsLinks = FOLLOW_LINKS.has(name) || rest.some((word) => FOLLOWS.test(startOf(word)))
  if (name === 'diff') return namedPaths.map((path) => ({ ...path, depth: { ...READS, followsLinks } }))
  if (CHANGES_BELOW.has(name)) return isRecursive ? namedPaths.map((path) => ({ ...path, depth: CHANGES })) : namedPaths
  if (COPIES.has(name)) {
    if (name !== 'mv' && name !== 'rsync' && !isRecursive) return namedPaths
    const target = rest.some((word) => /^(-[a-zA-Z]*t|--t)/.test(startOf(word))) ? undefined : rest.at(-1)
    return namedPaths.map((path) => ({
      ...path,
      depth: path.word === target ? CHANGES : name === 'mv' ? BOTH : { ...READS, followsLinks },
    }))
  }
  if (CONTAINERS.has(name) && rest.some((word) => /^(-[a-zA-Z]*v|--volume|--mount|cp$)/.test(startOf(word))))
    return [...namedPaths, { word: HERE }].map((path) => ({ ...path, depth: BOTH }))
  const archiver = Object.hasOwn(ARCHIVERS, name) ? ARCHIVERS[name] : undefined
  return archiver ? archivedPaths(archiver, name, rest, { namedPaths, followsLinks }) : namedPaths
}

function archivedPaths(
  archiver: Archiver,
  name: string,
  rest: readonly ShellWord[],
  foundPaths: { readonly namedPaths: readonly CommandPath[]; readonly followsLinks: boolean },
): readonly CommandPath[] {
  const { namedPaths } = foundPaths
  const words = rest.map(startOf).filter((start, at) => at === 0 || start.startsWith('-'))
  const takesOut = words.some((word) => archiver.takesOut?.test(word))
  const putsIn = !takesOut || words.some((word) => archiver.putsIn?.test(word))
  // It is not known which files these are if there is a list of names, or another directory.
  const isElsewhere = words.some((word) =>
    /^(-[a-zA-Z]*[CTI@]|--(directory|files-from|use-compress|to-command))/.test(word),
  )
  const all = isElsewhere || name === 'cpio' || takesOut ? [...namedPaths, { word: HERE }] : namedPaths
  const changes = takesOut || isElsewhere
  const followsLinks = foundPaths.followsLinks || words.some((word) => PACKS_TARGETS.test(word))
  const depth = putsIn ? { ...(changes ? BOTH : READS), followsLinks } : CHANGES
  return all.map((path) => ({ ...path, depth }))
}

/** Splits scripts in arguments, such as `python3 -c "open('file')"`. */
const SCRIPT = /[\s'"(){};|&<>`$,[\]]/
const MAX_GUESSES = 300

function guessedPaths(command: SimpleCommand): readonly CommandPath[] {
  if (!command.words.some((word) => SCRIPT.test(startOf(word)))) return []
  const texts = argumentTexts(command).filter((text) => /[./~]/.test(text))
  const words = texts.slice(0, MAX_GUESSES).map((text) => withHome(literalWord(text.replaceAll(/^@|(?<!:):+$/g, ''))))
  const paths = words.map((word): CommandPath => ({ word, isGuess: true }))
  return texts.length > MAX_GUESSES ? [...paths, { word: HERE, depth: BOTH }] : paths
}

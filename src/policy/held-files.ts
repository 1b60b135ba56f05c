/** Whether a command that reaches all files below a directory would reach one that a rule is about. */
import { basename, dirname } from 'node:path'
import type { Depth } from './path-words.ts'
import type { Disk } from './disk.ts'
import type { Effort } from './rules/comparison.ts'
import { canMeet, STAR } from './rules/globs.ts'
import type { Symbols } from './rules/globs.ts'
import type { Bases, PathPattern } from './rules/path-pattern.ts'
import { literalPaths, matchPath, partsOf } from './rules/path-pattern.ts'

export type Reach = {
  readonly disk: Disk
  readonly bases: Bases
  readonly effort: Effort
  readonly isDirectory: (path: string) => boolean
  readonly depth: Depth
  /** Another command of the line may bring files that are not there yet. */
  readonly mayChange: boolean
}

const NOTHING: ReadonlySet<string> = new Set()
/** A search that respects ignore files hardly ever looks into these, and nobody keeps secrets there. */
const LEFT_OUT: ReadonlySet<string> = new Set(['node_modules', '.git'])

/** `directory` is a real path. */
export function mayHold(pattern: PathPattern, directory: string, reach: Reach): boolean {
  const { disk, depth, mayChange } = reach
  if (!mayChange && !reach.isDirectory(directory)) return false
  const skips = depth.skipsHidden ? LEFT_OUT : NOTHING
  if (depth.followsLinks && disk.holds(directory, leadsTo(pattern, directory, reach), skips)) return true
  const paths = literalPaths(pattern, reach.bases)
  if (depth.isTracked) {
    if (disk.tracks(directory, trackedTexts(pattern))) return true
    if (!mayChange) return false
  }
  if (paths) return paths.some((path) => isBelow(path, directory) && mayReach(path, pattern.base, directory, reach))
  return mayChange || disk.holds(directory, reachesBy(pattern, directory, reach), skips)
}

/**
 * Returns true if a file that the rule is about may exist: what is not in the workdir may be elsewhere in a sandbox.
 */
export function mayExist(pattern: PathPattern, { disk, bases }: Pick<Reach, 'disk' | 'bases'>): boolean {
  return pattern.base !== 'workdir' || (literalPaths(withoutDepth(pattern), bases)?.some(disk.exists) ?? true)
}

/** `secrets/**` without the `**`: if the directory does not exist, nothing is in it. */
function withoutDepth({ base, parts }: PathPattern): PathPattern {
  const end = parts.findIndex((part) => typeof part === 'symbol')
  return end <= 0 ? { base, parts } : { base, parts: parts.slice(0, end) }
}

const isBelow = (path: string, directory: string): boolean => path.startsWith(directory === '/' ? '/' : `${directory}/`)

function mayReach(path: string, base: PathPattern['base'], directory: string, reach: Reach): boolean {
  const { disk, depth, mayChange, isDirectory } = reach
  if (!mayChange && base === 'workdir' && !disk.exists(path)) return false
  if (!isDirectory(path) && !isIncluded(basename(path), depth, reach.effort)) return false
  return !isLeftOut(path, directory, reach)
}

/** Matches links to a file that the rule is about, and to another directory, where further links may be. */
function leadsTo(pattern: PathPattern, directory: string, reach: Reach): (path: string, isLink: boolean) => boolean {
  return (path, isLink) => {
    const target = isLink ? reach.disk.targetOf(path) : undefined
    if (target === undefined || target === null) return target === null
    if (isBelow(target, directory)) return false
    const { match, isAbove } = matchPath(pattern, partsOf(target), reach.bases, reach.effort)
    return match !== 'no' || isAbove || reach.isDirectory(target)
  }
}

function reachesBy(pattern: PathPattern, directory: string, reach: Reach): (path: string) => boolean {
  const { depth, effort, bases } = reach
  return (path) => {
    if (effort.isSpent) return true
    if (matchPath(pattern, partsOf(path), bases, effort).match !== 'yes') return false
    return isIncluded(basename(path), depth, effort) && !isLeftOut(path, directory, reach)
  }
}

/** Returns true if the search leaves out the path because it is hidden, and no ignore file includes it again. */
function isLeftOut(path: string, directory: string, reach: Reach): boolean {
  if (!reach.depth.skipsHidden || !isHidden(path, directory)) return false
  const names = path
    .slice(directory.length)
    .split('/')
    .filter((name) => name.startsWith('.'))
  const lines = reach.disk.included(dirname(path), globalIgnores(reach))
  return !lines.some((line) => names.some((name) => fitsLine(line, name, reach.effort)))
}

const isHidden = (path: string, directory: string): boolean => path.slice(directory.length).includes('/.')

const isIncluded = (name: string, { includes }: Depth, effort: Effort): boolean =>
  !includes || includes.some((text) => canMeet(globOf(text), Array.from(name), effort))

/**
 * Classes, alternatives and escapes are not compared, nor are characters that a program may trim as blanks: a line with
 * one of these may be about any name.
 */
const NOT_COMPARED = /[[\]{}\\]|[^ -~]/

/** What a line takes besides comparing its characters, in steps. */
const STEPS_OF_A_LINE = 50

function fitsLine(line: string, name: string, effort: Effort): boolean {
  if (!effort.spend(STEPS_OF_A_LINE)) return true
  const last = line.replace(/\/$/, '').split('/').at(-1) ?? ''
  return NOT_COMPARED.test(last) || canMeet(globOf(last), Array.from(name), effort)
}

const globOf = (text: string): Symbols =>
  Array.from(text, (character) => (character === '*' || character === '?' ? STAR : character))

const globalIgnores = ({ bases }: Reach): string[] => bases.homes.map((home) => `${home}/.config/git/ignore`)

/** The index of git has one of these if it tracks a file that the pattern matches: names end with NUL there. */
function trackedTexts({ parts }: PathPattern): readonly string[] {
  const last = parts.findLast((part) => typeof part !== 'symbol')
  if (!last) return ['']
  if (last.every((symbol) => typeof symbol === 'string')) {
    const name = last.join('')
    return typeof parts.at(-1) === 'symbol' ? [`${name}/`] : [`${name}\0`, `${name}/`]
  }
  const runs = last
    .map((symbol) => (typeof symbol === 'string' ? symbol : '\0'))
    .join('')
    .split('\0')
  return [runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '')]
}

/** What is between the parentheses of a `Read(…)` or `Edit(…)` rule, and which paths it matches. */
import type { Certainty, Effort } from './comparison.ts'
import type { Symbols } from './globs.ts'
import { canMeet, coversAll, isBalanced, ONE, STAR, UNSEEN_AT_END } from './globs.ts'

/** The directories at which relative and home paths start. */
export type Bases = { readonly workdirs: readonly string[]; readonly homes: readonly string[] }

export type PathPattern = {
  readonly base: 'workdir' | 'home' | 'root'
  readonly parts: readonly PatternPart[]
}

/** `**`: any number of directories. */
type PatternPart = typeof ANY_DEPTH | Symbols
const ANY_DEPTH = Symbol('**')

/** A path by its components; `undefined` stands for anything, also several of them and `..`. */
export type PathParts = readonly (Symbols | undefined)[]

/** Returns what is wrong as a string. */
export function parsePathPattern(text: string): PathPattern | string {
  if (text.includes('\0')) return 'it has a NUL character'
  if (UNSEEN_AT_END.test(text))
    return 'a name in it begins or ends with a character that is not visible; leave it out, or write `?` for it'
  if (text === '') return 'it names no path; leave out the parentheses for all files'
  if (!isBalanced(text, '[]'))
    return 'its square brackets do not match; they stand for themselves, as in app/[id]/page.tsx'
  if (!isBalanced(text, '()')) return 'its parentheses do not match; nothing may follow the `)` of the rule'
  if (/^~[^/]/.test(text))
    return '`~` is the home directory of the shell; that of another user needs its whole path after `//`'
  if (/^\/(?!\/)/.test(text))
    return 'write `//` before an absolute path, and nothing before one that starts at the workdir'
  const base = text.startsWith('//') ? 'root' : text.startsWith('~') ? 'home' : 'workdir'
  const names = text
    .replace(/^~/, '')
    .split('/')
    .filter((name) => name !== '' && name !== '.')
  if (names.includes('..')) return '`..` is not possible; write an absolute path after `//`'
  const parts = names.map((name): PatternPart => (name === '**' ? ANY_DEPTH : symbolsOf(name)))
  return { base, parts }
}

const symbolsOf = (name: string): Symbols =>
  Array.from(name.replaceAll(/\*+/g, '*'), (character) =>
    character === '*' ? STAR : character === '?' ? ONE : character,
  )

/** What comparing a path, and one component with one part of a pattern, takes besides the characters, in steps. */
const STEPS_OF_A_PATH = 60
const STEPS_OF_A_PART = 5

export type PathMatch = {
  readonly match: Certainty
  /** The path is a directory above something that the pattern matches. */
  readonly isAbove: boolean
}

/** Matches what the pattern matches, and all below it. */
export function matchPath(
  { base, parts }: PathPattern,
  path: PathParts,
  { workdirs, homes }: Bases,
  effort: Effort,
): PathMatch {
  const starts = base === 'root' ? ['/'] : base === 'home' ? homes : workdirs
  let best: PathMatch = { match: 'no', isAbove: false }
  // The path could match if that is in doubt.
  const steps = (STEPS_OF_A_PATH + path.length + parts.length) * Math.max(1, starts.length - 1)
  if (!effort.spend(steps)) return { match: 'no', isAbove: true }
  for (const start of starts) {
    const first = partsOfBase(start)
    if (areApart(first, parts, path, effort)) continue
    const whole = [...first, ...parts]
    const match = matchFrom(whole, path, effort)
    const isAbove = best.isAbove || isAboveOf(whole, path, effort)
    best = { match: match === 'yes' || best.match === 'no' ? match : best.match, isAbove }
    if (match === 'yes') return best
  }
  return best
}

/** The same few for all rules and paths. */
const bases = new Map<string, Symbols[]>()
const MAX_BASES = 1000

function partsOfBase(start: string): readonly Symbols[] {
  let foundBase = bases.get(start)
  if (foundBase) return foundBase
  if (bases.size >= MAX_BASES) bases.clear()
  bases.set(start, (foundBase = partsOf(start)))
  return foundBase
}

/**
 * Returns true if a component that has the same place in both differs: nearly always it is known without all that
 * follows.
 */
function areApart(base: readonly Symbols[], pattern: readonly PatternPart[], path: PathParts, effort: Effort): boolean {
  for (let at = 0; at < base.length + pattern.length; at += 1) {
    const part = at < base.length ? base[at] : pattern[at - base.length]
    const name = path[at]
    if (part === undefined || part === ANY_DEPTH || name === undefined) return false
    if (!canMeet(part, name, effort)) return true
  }
  return false
}

/** The components of an absolute path in its normal form. */
export const partsOf = (path: string): Symbols[] =>
  path
    .split('/')
    .filter(Boolean)
    .map((name) => Array.from(name))

function matchFrom(pattern: readonly PatternPart[], path: PathParts, effort: Effort): Certainty {
  const isKnown = path.every((part) => part !== undefined && !part.includes(STAR))
  if (fits(pattern, path, { accepts: coversAll, acceptsUnknown: false, effort })) return 'yes'
  return !isKnown && fits(pattern, path, { accepts: mayBeName, acceptsUnknown: true, effort }) ? 'maybe' : 'no'
}

/** A `*` of the shell stands for no name that begins with a dot. */
const mayBeName = (part: Symbols, name: Symbols, effort: Effort): boolean =>
  !(name[0] === STAR && part[0] === '.') && canMeet(part, name, effort)

/** The paths that a pattern without wildcards stands for; undefined for another one. */
export function literalPaths({ base, parts }: PathPattern, { workdirs, homes }: Bases): readonly string[] | undefined {
  const names = parts.map((part) =>
    part === ANY_DEPTH || part.some((each) => typeof each !== 'string') ? undefined : part.join(''),
  )
  if (names.includes(undefined)) return undefined
  const starts = base === 'root' ? [''] : base === 'home' ? homes : workdirs
  return starts.map((start) => `${start}/${names.join('/')}`)
}

type Comparison = {
  readonly accepts: (pattern: Symbols, text: Symbols, effort: Effort) => boolean
  /** Whether what is not known fits anything. */
  readonly acceptsUnknown: boolean
  readonly effort: Effort
}

/**
 * Returns true if the pattern ends at or before the end of the path. Row by row: time is the product of their lengths.
 */
function fits(
  pattern: readonly PatternPart[],
  path: PathParts,
  { accepts, acceptsUnknown, effort }: Comparison,
): boolean {
  let reachedPlaces = new Set([0])
  for (const part of pattern) {
    const next = new Set<number>()
    for (const from of reachedPlaces) {
      if (!effort.spend(part === ANY_DEPTH ? path.length - from : STEPS_OF_A_PART)) return acceptsUnknown
      if (part === ANY_DEPTH) for (let to = from; to <= path.length; to += 1) next.add(to)
      else if (from < path.length) {
        const name = path[from]
        if (name === undefined) {
          if (acceptsUnknown) for (let to = from; to <= path.length; to += 1) next.add(to)
        } else if (accepts(part, name, effort)) next.add(from + 1)
      }
    }
    reachedPlaces = next
    if (reachedPlaces.size === 0) return false
  }
  return true
}

/** All of the path fits, and some of the pattern is left. */
function isAboveOf(pattern: readonly PatternPart[], path: PathParts, effort: Effort): boolean {
  for (const [at, part] of pattern.entries()) {
    const name = path[at]
    // The path ends here, or what follows is not known.
    if (part === ANY_DEPTH || name === undefined) return true
    if (!mayBeName(part, name, effort)) return false
  }
  return false
}

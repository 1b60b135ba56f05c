/**
 * Reads `.gitignore` files as git does, without git: it would read the configuration of the repository, which runs
 * programs. Paths and patterns are bytes as characters (latin1). Each match takes time proportional to the lengths.
 */

/** The rules of one file, for the paths below its directory. */
export type IgnoreRules = readonly IgnoreRule[]

type IgnoreRule = {
  readonly isNegated: boolean
  readonly forDirectories: boolean
  /** Matched with the name alone, at any depth. */
  readonly name?: string
  /** Matched with the path from the directory of the file, segment by segment. */
  readonly segments?: readonly string[]
  /** How many names a path has at least that the segments match. */
  readonly depth?: number
}

/** A larger file is read up to here. */
const MAX_RULES = 5000
/** Patterns of this length, in characters, are matched with one path in a few milliseconds, whatever they are. */
const PIECE_LENGTH = 16 * 1024
/** No name is longer than this. */
const MAX_PATTERN_LENGTH = 4096

/** Returns pieces, which are matched one after another, the last one first. */
export function readIgnoreRules(text: string): readonly IgnoreRules[] {
  const pieces: IgnoreRule[][] = []
  let length = Infinity
  for (const line of text.split('\n', MAX_RULES)) {
    const rule = readRule(line)
    if (!rule) continue
    length += line.length
    if (length > PIECE_LENGTH) {
      pieces.push([])
      length = line.length
    }
    pieces.at(-1)?.push(rule)
  }
  return pieces
}

function readRule(line: string): IgnoreRule | undefined {
  if (line.startsWith('#') || line.length > MAX_PATTERN_LENGTH) return undefined
  let pattern = withoutTrailingSpaces(line.endsWith('\r') ? line.slice(0, -1) : line)
  const isNegated = pattern.startsWith('!')
  if (isNegated) pattern = pattern.slice(1)
  const forDirectories = pattern.endsWith('/')
  if (forDirectories) pattern = pattern.slice(0, -1)
  if (pattern === '' || pattern === '/') return undefined
  const kind = { isNegated, forDirectories }
  if (!pattern.includes('/')) return { ...kind, name: pattern }
  const all = (pattern.startsWith('/') ? pattern.slice(1) : pattern).split('/')
  // Two that stand for any number of names are as good as one.
  const segments = all.filter((each, at) => !(isAny(each) && isAny(all[at + 1] ?? '')))
  return { ...kind, segments, depth: segments.filter((each) => !isAny(each)).length }
}

const isAny = (segment: string) => /^\*{2,}$/.test(segment)

/** A space after a backslash stays. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length
  while (end > 0 && line[end - 1] === ' ' && line[end - 2] !== '\\') end--
  return line.slice(0, end)
}

/** Returns whether the last rule that matches ignores the path; undefined if none matches. `path`: from the directory of the rules. */
export function matchIgnoreRules(rules: IgnoreRules, path: string, isDirectory: boolean): boolean | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1)
  let segments: readonly string[] | undefined
  for (let index = rules.length - 1; index >= 0; index--) {
    const rule = rules[index]
    if (!rule || (rule.forDirectories && !isDirectory)) continue
    const matches =
      rule.name === undefined ? matchSegments(rule, (segments ??= path.split('/'))) : matchGlob(rule.name, name)
    if (matches) return !rule.isNegated
  }
  return undefined
}

/** `**` stands for any number of segments, at the end for at least one. */
function matchSegments({ segments = [], depth = 0 }: IgnoreRule, path: readonly string[]): boolean {
  if (depth > path.length) return false
  // These are the ends in the path of the pattern so far, in order.
  let ends: readonly number[] = [0]
  for (const [index, segment] of segments.entries()) {
    if (isAny(segment)) {
      const first = (ends[0] ?? 0) + (index === segments.length - 1 ? 1 : 0)
      ends = Array.from({ length: Math.max(path.length + 1 - first, 0) }, (_, at) => first + at)
    } else ends = ends.filter((at) => at < path.length && matchGlob(segment, path[at] ?? '')).map((at) => at + 1)
    if (ends.length === 0) return false
  }
  return ends.at(-1) === path.length
}

/** Goes back to the last star only, so that no pattern takes longer than the product of the lengths. */
function matchGlob(pattern: string, text: string): boolean {
  if (!/[*?[\\]/.test(pattern)) return pattern === text
  let [at, readTo] = [0, 0]
  let [star, resumeAt] = [-1, 0]
  while (readTo < text.length) {
    if (pattern[at] === '*') {
      star = at++
      resumeAt = readTo
      continue
    }
    const length = at < pattern.length ? matchOne(pattern, at, text.charCodeAt(readTo)) : 0
    if (length > 0) {
      at += length
      readTo++
    } else if (star >= 0) {
      at = star + 1
      readTo = ++resumeAt
    } else return false
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}

/** Returns how many characters of the pattern match the character; 0 if they do not. */
function matchOne(pattern: string, at: number, code: number): number {
  const char = pattern[at]
  if (char === '?') return 1
  if (char === '[') return matchClass(pattern, at, code)
  if (char === '\\') return at + 1 < pattern.length && pattern.charCodeAt(at + 1) === code ? 2 : 0
  return pattern.charCodeAt(at) === code ? 1 : 0
}

/** A class without an end matches nothing, as in git. */
function matchClass(pattern: string, start: number, code: number): number {
  let at = start + 1
  const isNegated = pattern[at] === '!' || pattern[at] === '^'
  if (isNegated) at++
  let matches = false
  for (let isFirst = true; isFirst || pattern[at] !== ']'; isFirst = false) {
    if (at >= pattern.length) return 0
    const nameEnd = pattern[at] === '[' && pattern[at + 1] === ':' ? pattern.indexOf(':]', at + 2) : -1
    if (nameEnd > 0) {
      const name = pattern.slice(at + 2, nameEnd)
      const set = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
      if (!set) return 0
      matches ||= set.test(String.fromCharCode(code))
      at = nameEnd + 2
      continue
    }
    if (pattern[at] === '\\') at++
    const from = pattern.charCodeAt(at++)
    if (pattern[at] !== '-' || pattern[at + 1] === ']' || at + 1 >= pattern.length) {
      matches ||= from === code
      continue
    }
    at += pattern[at + 1] === '\\' ? 2 : 1
    const to = pattern.charCodeAt(at++)
    matches ||= from <= code && code <= to
  }
  return matches === isNegated ? 0 : at + 1 - start
}

/** The classes of POSIX, of ASCII characters. */
const NAMED: Readonly<Record<string, RegExp>> = {
  alnum: /[a-z0-9]/i,
  alpha: /[a-z]/i,
  blank: /[ \t]/,
  digit: /[0-9]/,
  lower: /[a-z]/,
  upper: /[A-Z]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /\s/,
  xdigit: /[0-9a-f]/i,
  // oxlint-disable-next-line no-control-regex -- what the class is
  cntrl: /[\0-\x1f\x7f]/,
  graph: /[!-~]/,
  print: /[ -~]/,
}

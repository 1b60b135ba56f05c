/** Patterns for paths: `*` and `?` within a name, `[a-z]` for one character, `**` for any number of directories. In time linear to both, whatever the pattern. */

/** A pattern without a slash is for the name, at any depth; one with a slash for the whole path. */
export function matchesGlob(path: string, pattern: string): boolean {
  const names = path.split('/')
  if (!pattern.includes('/')) return matchesName(names.at(-1)!, pattern)
  // At its end, `**` is what is in a directory, and not the directory.
  const patterns = pattern
    .replace(/\/\*\*$/, '/**/*')
    .split('/')
    .filter(Boolean)
  return matchesNames(names, patterns)
}

function matchesNames(names: readonly string[], patterns: readonly string[]): boolean {
  return matchesWithGaps(names.length, patterns, {
    isGap: (pattern) => pattern === '**',
    fits: (at, pattern) => matchesName(names[at]!, pattern),
  })
}

function matchesName(name: string, pattern: string): boolean {
  const characters = Array.from(name)
  return matchesWithGaps(characters.length, partsOf(pattern), {
    isGap: (part) => part === '*' || part === '**',
    fits: (at, part) => fitsCharacter(characters[at]!, part),
  })
}

type Rules = {
  readonly isGap: (part: string) => boolean
  readonly fits: (at: number, part: string) => boolean
}

/** Only the last gap ever has to take more: what an earlier one could take as well, the last one can. */
function matchesWithGaps(length: number, parts: readonly string[], { isGap, fits }: Rules): boolean {
  let at = 0
  let part = 0
  let gap: { readonly part: number; at: number } | undefined
  while (at < length) {
    if (part < parts.length && isGap(parts[part]!)) gap = { part: part++, at }
    else if (part < parts.length && fits(at, parts[part]!)) {
      at++
      part++
    } else if (gap) {
      at = ++gap.at
      part = gap.part + 1
    } else return false
  }
  return parts.slice(part).every(isGap)
}

/** `a*[x-z]` -> `a`, `*`, `[x-z]`. A bracket that is not closed is itself. */
const partsOf = (pattern: string): string[] => pattern.match(/\*+|\[!?\]?[^\]]*\]|[^]/gu) ?? []

function fitsCharacter(character: string, part: string): boolean {
  if (part === '?') return true
  if (!/^\[.+\]$/su.test(part)) return character === part
  const isNegated = part[1] === '!'
  const members = Array.from(part.slice(isNegated ? 2 : 1, -1))
  return isNegated !== isAmong(character, members)
}

function isAmong(character: string, members: readonly string[]): boolean {
  for (let at = 0; at < members.length; at++) {
    const isRange = members[at + 1] === '-' && at + 2 < members.length
    if (isRange && members[at]! <= character && character <= members[at + 2]!) return true
    if (isRange) at += 2
    else if (members[at] === character) return true
  }
  return false
}

/**
 * The grammar of hook matchers: names, alternatives, and simple regular expressions. Only patterns that can be matched
 * in bounded time are accepted.
 */
/* oxlint-disable regexp/stack, regexp/time, regexp/built -- a matcher has at most `MAX_MATCHER_CHARS`, and what it matches is a name */

export const MAX_MATCHER_CHARS = 500
const MAX_ALTERNATIVES = 50

/**
 * Quantifiers in one alternative. Matching a name of n characters takes at most n to the power of one more than this
 * many steps.
 */
const MAX_QUANTIFIERS = 2

/** Names and alternatives of names: compared as they are. */
const NAMES = /^[A-Za-z0-9_-]+(\|[A-Za-z0-9_-]+)*$/

/** Everything else that is accepted: characters, `.`, classes, `\w \d \s` and escaped punctuation, groups, `^`, `$`. */
const PIECES = /(?:\\[wdsWDSb.*+?()[\]{}|^$/\\-]|\[(?:[^\\[\]]|\\[wds\]\\-])+\]|[^\\[\]{}])*/y

/** `names`: one of them is equal. `patterns`: one of them is found anywhere in the name. */
export type MatcherParts =
  | { readonly kind: 'all' }
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'patterns'; readonly patterns: readonly RegExp[] }

/** Returns what is wrong with the text, as the end of a sentence about it. */
export function readMatcher(text: string): MatcherParts | { readonly fault: string } {
  if (text === '' || text === '*') return { kind: 'all' }
  if (text.length > MAX_MATCHER_CHARS) return { fault: `has more than ${MAX_MATCHER_CHARS} characters` }
  if (NAMES.test(text)) return { kind: 'names', names: text.split('|') }
  const alternatives = splitAlternatives(text)
  const fault = alternatives.length > MAX_ALTERNATIVES ? 'has too many alternatives' : faultOf(text, alternatives)
  if (fault !== undefined) return { fault }
  try {
    return { kind: 'patterns', patterns: alternatives.map((each) => new RegExp(each)) }
  } catch {
    return { fault: 'is not a valid regular expression' }
  }
}

function faultOf(text: string, alternatives: readonly string[]): string | undefined {
  PIECES.lastIndex = 0
  if (PIECES.exec(text)?.[0].length !== text.length) return NOT_SUPPORTED
  // Classes and escapes are single characters from here on.
  const plain = alternatives.map((each) => each.replaceAll(/\\.|\[(?:\\.|[^\]\\])*\]/g, 'x'))
  if (plain.some((each) => /\(\?(?!:)|\)[*+?]|[*+?]{2}/.test(each))) return NOT_SUPPORTED
  const counts = plain.map((each) => each.replaceAll('(?:', '(').replaceAll(/[^*+?]/g, '').length)
  if (counts.some((count) => count > MAX_QUANTIFIERS))
    return `has more than ${MAX_QUANTIFIERS} quantifiers in one alternative`
  return undefined
}

const NOT_SUPPORTED =
  'is more than a simple regular expression: names, |, ., classes, groups, ^, $ and *, + or ? behind one character are possible'

/** Splits at the top level only: alternatives in groups stay where they are. */
function splitAlternatives(text: string): string[] {
  const parts = ['']
  let depth = 0
  for (const piece of text.match(/\\.|\[(?:\\.|[^\]\\])*\]|[\s\S]/g) ?? []) {
    if (piece === '(') depth++
    if (piece === ')') depth--
    if (piece === '|' && depth === 0) parts.push('')
    else parts[parts.length - 1] += piece
  }
  return parts
}

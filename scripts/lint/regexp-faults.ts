/** Finds what makes a regular expression fail or slow on a long text. Knows nothing about where the expression is. */
import type { AST } from '@eslint-community/regexpp'
import { RegExpParser, visitRegExpAST } from '@eslint-community/regexpp'
import { getConsumedChars, getFirstConsumedChar, isPotentiallyEmpty, toUnicodeSet } from 'regexp-ast-analysis'
import { analyse } from 'scslre'

/** A repetition of at most this many turns needs too little of the stack, and too little time, to matter. */
const MANY_TURNS = 10_000

/** The ways for so many turns, twice for each, are at most a million. */
const FEW_TURNS = 20

export type RegexpFault = { readonly kind: 'stack' | 'time'; readonly message: string }

export function regexpFaults(source: string, flags: string): RegexpFault[] {
  const { pattern, flags: parsed } = new RegExpParser().parseLiteral(`/${source}/${flags}`)
  const time = [...knownGrowth(source, flags), ...restarts(pattern, parsed), ...ambiguous(pattern, parsed)]
  return [
    ...stackFaults(pattern, parsed).map((message) => ({ kind: 'stack' as const, message })),
    ...time.map((message) => ({ kind: 'time' as const, message })),
  ]
}

/** V8 keeps each turn of these repetitions on a stack of 64 MiB: a text of some million turns is a RangeError. */
function stackFaults(pattern: AST.Pattern, flags: AST.Flags): string[] {
  const found: string[] = []
  visitRegExpAST(pattern, {
    onQuantifierEnter({ max, element, raw }) {
      if (max > MANY_TURNS && !isOneText(element, flags))
        found.push(
          `${raw} fails on a text of some million turns: "Maximum call stack size exceeded". Repeat one character, or limit the number of turns.`,
        )
    },
  })
  return found
}

/** Returns true for a text with a fixed length that captures nothing and has no alternatives: V8 keeps its first and its last turn. */
function isOneText(element: AST.Element, flags: AST.Flags): boolean {
  switch (element.type) {
    case 'Character':
    case 'CharacterClass':
    case 'CharacterSet':
      return hasOneLength(element, flags)
    case 'Group':
      return element.alternatives.length === 1 && partsOf([element]).every((part) => isOneText(part, flags))
    default:
      return false
  }
}

/**
 * Returns false for a class that matches one and two units: with the flags u and v, one with characters outside the
 * first 65,536.
 */
function hasOneLength(character: AST.Character | AST.CharacterClass | AST.CharacterSet, flags: AST.Flags): boolean {
  if (!flags.unicode && !flags.unicodeSets) return true
  const { chars, accept } = toUnicodeSet(character, flags)
  return accept.isEmpty && chars.ranges.every(({ min, max }) => max < 0xd8_00 || (min > 0xdf_ff && max < 0x1_00_00))
}

/** Time that grows with the square of the length of the text, or faster. */
function knownGrowth(source: string, flags: string): string[] {
  const { reports } = analyse({ source, flags }, { reportTypes: { Move: !flags.includes('y') } })
  return reports.map(({ type, character, exponential }) => {
    const growth = exponential ? 'exponential' : 'at least quadratic'
    return `The time is ${growth} in the number of ${JSON.stringify(character.pick)}: ${CAUSES[type]}.`
  })
}

const RESTARTS = 'each position is a new start of the same repetition (write /(?<!=)=+$/ instead of /=+$/)'
const CAUSES = {
  Trade: 'two repetitions take the same text, and each division of it is tried',
  Self: 'a repetition takes the same text in several ways',
  Move: RESTARTS,
}

/** Finds what `analyse` does not look for: a beginning that the repetition behind it takes too, as in `a[^b]*b`. */
function restarts({ alternatives }: AST.Pattern, flags: AST.Flags): string[] {
  if (flags.sticky) return []
  return alternatives.flatMap((alternative) => {
    const parts = partsOf(alternative.elements)
    const at = parts.findIndex((part) => part.type === 'Quantifier' && part.max > MANY_TURNS)
    const repeated = parts[at]
    if (at < 1 || repeated === undefined) return []
    const { chars } = getConsumedChars(repeated, flags)
    const isTaken = parts
      .slice(0, at)
      .every((part) => part.type !== 'Assertion' && !getConsumedChars(part, flags).chars.isDisjointWith(chars))
    const mayFail = parts.slice(at + 1).some((part) => part.type === 'Assertion' || !isPotentiallyEmpty(part, flags))
    return isTaken && mayFail ? [`The time is quadratic in the beginnings of ${alternative.raw}: ${RESTARTS}.`] : []
  })
}

/** Alternatives that begin alike: a text that one of them takes may be two turns of others, as in `(?:a|b|ab)*`. */
function ambiguous(pattern: AST.Pattern, flags: AST.Flags): string[] {
  const found: string[] = []
  visitRegExpAST(pattern, {
    onQuantifierEnter({ max, element, raw }) {
      if (max <= FEW_TURNS || (element.type !== 'Group' && element.type !== 'CapturingGroup')) return
      const firsts = element.alternatives.map((each) => getFirstConsumedChar(each, 'ltr', flags).char)
      if (firsts.some((first, at) => firsts.slice(at + 1).some((other) => !first.isDisjointWith(other))))
        found.push(`The time may be exponential: in ${raw} two alternatives begin with the same character.`)
    },
  })
  return found
}

/** Returns the elements, with those of groups that have no alternatives in place of the groups, optional or not. */
function partsOf(elements: readonly AST.Element[]): AST.Element[] {
  return elements.flatMap((element) => {
    const inner = element.type === 'Quantifier' && element.max === 1 ? element.element : element
    const [only, ...others] = inner.type === 'Group' || inner.type === 'CapturingGroup' ? inner.alternatives : []
    return only === undefined || others.length > 0 ? [element] : partsOf(only.elements)
  })
}

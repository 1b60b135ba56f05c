/** Compares two texts with wildcards: a pattern, and a text that is only partly known. Linear or bounded, whatever they are. */

import type { Effort } from './comparison.ts'

/** A character, or a wildcard. */
export type Symbols = readonly (string | typeof STAR | typeof ONE)[]

/** Any characters, also none. */
export const STAR = Symbol('*')
/** Exactly one character. */
export const ONE = Symbol('?')

/** Returns true if the pattern matches the text for any value of its wildcards: only a `*` of the pattern covers them. */
export function coversAll(pattern: Symbols, text: Symbols, effort: Effort): boolean {
  if (effort.isSpent) return false
  let steps = 0
  let [at, from, star, resume] = [0, 0, -1, 0]
  while (from < text.length) {
    // An early end of most comparisons costs nothing.
    if ((steps += 1) % STRIDE === 0 && !effort.spend(STRIDE)) return false
    if (at < pattern.length && pattern[at] === STAR) {
      star = at
      resume = from
      at += 1
    } else if (at < pattern.length && matchesOne(pattern[at], text[from])) {
      at += 1
      from += 1
    } else if (star >= 0) {
      at = star + 1
      resume += 1
      from = resume
    } else return ends(effort, steps, false)
  }
  while (pattern[at] === STAR) at += 1
  return ends(effort, steps, at === pattern.length)
}

const STRIDE = 256

/** Counts the steps since the last stride, and that there was a comparison. */
function ends(effort: Effort, steps: number, result: boolean): boolean {
  return effort.spend(1 + (steps % STRIDE)) && result
}

const matchesOne = (pattern: Symbols[number] | undefined, text: Symbols[number] | undefined): boolean =>
  pattern === ONE ? text !== STAR : pattern === text && text !== STAR

/** The product above which the answer is that they may. */
const MAX_CELLS = 1_000_000

/** Returns true if some text fits both. */
export function canMeet(pattern: Symbols, text: Symbols, effort: Effort): boolean {
  if (!effort.spend(1)) return true
  const isKnownPrefix = comparePrefixes(pattern, text)
  if (isKnownPrefix !== undefined) return isKnownPrefix
  const cells = pattern.length * text.length
  if (cells > MAX_CELLS || !effort.spend(cells)) return true
  let row = new Uint8Array(text.length + 1)
  row[0] = 1
  for (let from = 0; from < text.length && text[from] === STAR; from += 1) row[from + 1] = 1
  for (const symbol of pattern) {
    const next = new Uint8Array(text.length + 1)
    next[0] = symbol === STAR && row[0] ? 1 : 0
    for (let from = 0; from < text.length; from += 1) next[from + 1] = meetsAt(symbol, text[from], from, row, next)
    row = next
  }
  return row[text.length] === 1
}

function meetsAt(
  symbol: Symbols[number],
  other: Symbols[number] | undefined,
  from: number,
  row: Uint8Array,
  next: Uint8Array,
): 0 | 1 {
  const isSkipped = symbol === STAR || other === STAR
  if (isSkipped) return row[from + 1] || next[from] || row[from] ? 1 : 0
  return row[from] && (symbol === other || symbol === ONE || other === ONE) ? 1 : 0
}

/** Compares the characters up to the first wildcard. Returns undefined if they do not decide whether the two can match. */
function comparePrefixes(pattern: Symbols, text: Symbols): boolean | undefined {
  const length = Math.min(pattern.length, text.length)
  for (let at = 0; at < length; at += 1) {
    const [a, b] = [pattern[at], text[at]]
    if (a === STAR || b === STAR) return undefined
    if (a !== b && a !== ONE && b !== ONE) return false
  }
  return pattern.length === text.length ? true : undefined
}

/** Blanks that no shell splits words at, and characters that nobody sees: a rule with one means another text. */
export const UNSEEN = /(?![ \t])[\p{Cc}\p{Cf}\p{Z}]/u

/** The same at an end of a name. Within a name they are possible: such names exist. */
export const UNSEEN_AT_END = /(^|\/)(?![ \t])[\p{Cc}\p{Cf}\p{Z}]|(?![ \t])[\p{Cc}\p{Cf}\p{Z}](\/|$)/u

/** Returns true if each opening bracket of the text has its closing one. */
export function isBalanced(text: string, [opening, closing]: string): boolean {
  let depth = 0
  for (const character of text) {
    if (character === opening) depth += 1
    else if (character === closing && (depth -= 1) < 0) return false
  }
  return depth === 0
}

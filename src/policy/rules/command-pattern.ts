/** What is between the parentheses of a `Bash(…)` rule, and which commands it matches. */
import type { ShellWord } from '../shell/shell-word.ts'
import { literalOf, startOf, wordAfter } from '../shell/shell-word.ts'
import type { Certainty, Effort } from './comparison.ts'
import { strongest } from './comparison.ts'
import type { Symbols } from './globs.ts'
import { withoutOptions } from './skipped-options.ts'
import { canMeet, coversAll, isBalanced, STAR, UNSEEN } from './globs.ts'
import { lazilyForEach } from '../../lib/lazily.ts'

export type CommandPattern = {
  readonly symbols: Symbols
  /** It ends with `:*` or ` *`: any arguments may follow, or none. */
  readonly isOpen: boolean
  /** The words up to the first `*`. */
  readonly literalWords: readonly string[]
  readonly isExact: boolean
}

/** The character between words. No command holds it: NUL characters are refused before. */
const GAP = '\0'

/** Returns what is wrong as a string. */
export function parseCommandPattern(text: string): CommandPattern | string {
  const trimmedText = text.trim()
  if (/["'`\\$]/.test(trimmedText))
    return 'quotes, backslashes and `$` are not needed: words are compared without quotes'
  if (/[\n\0]/.test(trimmedText)) return 'it must be one line'
  if (UNSEEN.test(trimmedText))
    return 'it has a blank that is not a space, or a character that is not visible; write spaces between words'
  // A rule for `a && b` could never match: the two are decided one by one.
  if (/[;&|<>]/.test(trimmedText)) return 'a rule is about one command; write one rule for each part'
  if (!isBalanced(trimmedText, '()')) return 'its parentheses do not match; nothing may follow the `)` of the rule'
  const isOpen = /(:| )\*$/.test(trimmedText)
  const start = isOpen ? trimmedText.slice(0, -2).trim() : trimmedText
  if (start === '') return 'it names no command'
  const knownStart = start.split('*', 1)[0] ?? ''
  const literalWords = knownStart.split(/\s+/).filter(Boolean)
  // `npm run te*`: the last word is not whole.
  if (knownStart.length < start.length && !/\s$/.test(knownStart)) literalWords.pop()
  const symbols = symbolsOf(isOpen ? `${start} *` : start)
  return { symbols, isOpen, literalWords, isExact: !isOpen && !start.includes('*') }
}

function symbolsOf(text: string): Symbols {
  return Array.from(text.replaceAll(/[ \t]+/g, GAP), (character) => (character === '*' ? STAR : character))
}

/** Compares with a rule that allows: the command as it is written, word by word. */
export function matchesCertainly(pattern: CommandPattern, words: readonly ShellWord[], effort: Effort): boolean {
  const [text = []] = textsOf(words).certain
  return coversAll(pattern.symbols, endedText(pattern, text), effort)
}

/** What comparing a command takes besides its characters, in steps. */
const STEPS_OF_A_COMMAND = 20

/**
 * Compares with a rule that denies or asks: also under its full path, with its words in one pair of quotes, and with
 * options between its words, as in `git -C . push`.
 */
export function matchCommand(pattern: CommandPattern, words: readonly ShellWord[], effort: Effort): Certainty {
  const match = matchWords(pattern, words, effort)
  if (match !== 'no') return match
  return strongest(
    withoutOptions(pattern.literalWords, words).map(({ words: shorter, isCertain }) =>
      matchWords(pattern, shorter, effort) === 'no' ? 'no' : isCertain ? 'yes' : 'maybe',
    ),
  )
}

function matchWords(pattern: CommandPattern, words: readonly ShellWord[], effort: Effort): Certainty {
  if (!effort.spend(STEPS_OF_A_COMMAND)) return 'maybe'
  const { certain: certainTexts, possible } = textsOf(words)
  if (certainTexts.some((text) => coversAll(pattern.symbols, endedText(pattern, text), effort))) return 'yes'
  return possible.some((text) => canMeet(pattern.symbols, endedText(pattern, text), effort)) ? 'maybe' : 'no'
}

/** `possible`: with every value of what is not known; empty when all is. */
type Texts = { readonly certain: readonly Symbols[]; readonly possible: readonly Symbols[] }

/** The same for all rules. */
const textsOf = lazilyForEach((words: readonly ShellWord[]): Texts => {
  const variants = [words, withoutDirectory(words)]
  const certain = variants.flatMap((variant) => withSpaces(textOf(variant, [GAP, STAR])))
  const isWhole = !certain[0]?.includes(STAR)
  return { certain, possible: isWhole ? [] : variants.flatMap((variant) => withSpaces(textOf(variant, [STAR]))) }
})

/** A pattern with arguments also matches none: they all end with a gap. */
const endedText = ({ isOpen }: CommandPattern, text: Symbols): Symbols => (isOpen ? withGap(text) : text)

const withGap = lazilyForEach((text: Symbols): Symbols => [...text, GAP])

/** `many` is what comes before a word that may be none or several. */
function textOf(words: readonly ShellWord[], many: Symbols): Symbols {
  const text: Symbols[number][] = []
  for (const [at, word] of words.entries()) {
    if (at > 0) text.push(...(word.isMany ? many : [GAP]))
    for (const piece of word.pieces) {
      if ('hole' in piece) text.push(STAR)
      else for (const symbol of piece.text) text.push(symbol)
    }
  }
  return text
}

const withSpaces = (text: Symbols): Symbols[] => (text.includes(' ') ? [text, spacesAsGaps(text)] : [text])

function withoutDirectory(words: readonly ShellWord[]): readonly ShellWord[] {
  const [name, ...rest] = words
  if (!name) return words
  const length = startOf(name).lastIndexOf('/') + 1
  return length === 0 ? words : [wordAfter(name, length), ...rest]
}

const spacesAsGaps = (text: Symbols): Symbols =>
  text.map((symbol) => (symbol === ' ' || symbol === '\t' || symbol === '\n' ? GAP : symbol))

/** A rule for exactly these words; undefined when no rule can say that. */
export function exactPattern(words: readonly ShellWord[]): string | undefined {
  const texts = words.map((word) => (word.isMany ? undefined : literalOf(word)))
  if (!texts.every((text) => text !== undefined && text !== '' && !/[\s*"'`\\$;&|<>]/.test(text) && !UNSEEN.test(text)))
    return undefined
  const text = texts.join(' ')
  return isBalanced(text, '()') ? text : undefined
}

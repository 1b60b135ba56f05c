/**
 * What a word is, for the search: letters and digits, without case and accents. A storage gets words and never a text, so
 * that no text can be a syntax of its queries.
 */

/** Scripts without spaces between words: each character is a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{N}\p{M}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]{1,1000}/gv

/** Longer ones, such as base64, are cut: they would be most of an index. */
const MAX_WORD = 32
/** Words of a query. */
const MAX_WORDS = 16

type Word = { readonly word: string; readonly start: number; readonly end: number }

function* wordsIn(text: string): Generator<Word> {
  for (const { 0: foundWord, index } of text.matchAll(WORD)) {
    const word = fold(foundWord)
    if (word !== '') yield { word, start: index, end: index + foundWord.length }
  }
}

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text)

function fold(word: string): string {
  const lower = word.toLowerCase()
  const plain = isAscii(lower) ? lower : lower.normalize('NFD').replaceAll(/[^\p{L}\p{N}]/gu, '')
  return plain.slice(0, MAX_WORD).toWellFormed()
}

/** Returns the different words of the texts, separated by spaces, up to about this number of characters. */
export function indexedWords(texts: readonly string[], limit: number): string {
  const words = new Set<string>()
  let remainingWords = limit
  for (const text of texts)
    for (const { word } of wordsIn(text)) {
      if (words.has(word)) continue
      words.add(word)
      remainingWords -= word.length
      if (remainingWords < 0) return [...words].join(' ')
    }
  return [...words].join(' ')
}

/**
 * Returns what an event must have; empty if the query has no word. A word that another one begins with is left out: each costs time,
 * the shorter the more, and it finds nothing else.
 */
export function queriedWords(query: string): string[] {
  const words = [...new Set(wordsIn(query).map(({ word }) => word))]
  return words.filter((word) => !words.some((other) => other !== word && other.startsWith(word))).slice(0, MAX_WORDS)
}

export type Snippet = {
  readonly snippet: string
  readonly matches: readonly { readonly start: number; readonly end: number }[]
}

/** UTF-16 code units. */
const [BEFORE, LENGTH] = [60, 240]

/** Returns the part of the first text that has one of the words, with all of them that are in this part. */
export function snippetOf(texts: readonly string[], words: readonly string[]): Snippet | undefined {
  for (const text of texts) {
    const foundWords = wordsIn(text)
      .filter(({ word }) => words.some((wantedWord) => word.startsWith(wantedWord)))
      .toArray()
    const [first] = foundWords
    if (!first) continue
    const from = borderAt(text, Math.max(0, first.start - BEFORE))
    const to = borderAt(text, Math.max(first.end, Math.min(text.length, from + LENGTH)))
    return {
      snippet: text.slice(from, to),
      matches: foundWords.flatMap(({ start, end }) => (end <= to ? [{ start: start - from, end: end - from }] : [])),
    }
  }
  return undefined
}

/** Moves a place that is within a character to its end. */
const borderAt = (text: string, at: number): number => (/[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at)

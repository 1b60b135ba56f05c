/**
 * Takes out keys that a provider has masked only in part (`sk-abc*****wxyz`), which error messages repeat. Every text of
 * that form goes, whatever key it is of: a rule that compared it with a key would tell whoever can have a text repeated
 * how the key begins.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

const PLACEHOLDER = '<secret:masked>'

/** What stands in place of hidden characters. */
const MASK = new Set('*•●·∙xX')
const DOTS = new Set('.…')

/** Fewer are punctuation, or emphasis as Markdown has it. */
const MIN_MASK_CHARS = 3
/** Letters are hidden behind more of them than words have in a row. */
const MIN_CROSSES = 4
/** Dots hide something only where so much of a key is left beside them. */
const MIN_SHOWN_BESIDE_DOTS = 2

/** Of a message that says nothing of keys, dots are only dots. */
const ABOUT_KEYS = /key|token|credential|secret|bearer|authoriz|authentic|unauthor|password|permission|denied/i

/** For the message of an error. Takes time in proportion to its length. */
export function redactMaskedKeys(message: string): string {
  const hasDots = ABOUT_KEYS.test(message)
  return message
    .split(/(\s)/)
    .map((word) => redactWord(word, hasDots))
    .join('')
}

function redactWord(word: string, hasDots: boolean): string {
  let written = ''
  let done = 0
  for (let at = 0; at < word.length; at++) {
    const end = endOfMask(word, at, hasDots)
    if (end === at) continue
    let from = at
    while (from > done && isOfKey(word[from - 1]!)) from--
    const to = endOfShown(word, end, hasDots)
    if (isKey(word.slice(from, at), word.slice(end, to), word[at]!)) {
      written += word.slice(done, from) + PLACEHOLDER
      done = to
    }
    at = to - 1
  }
  return written + word.slice(done)
}

/** The end of what belongs to the same key: what is shown of it, and other masks. */
function endOfShown(word: string, from: number, hasDots: boolean): number {
  let to = from
  while (to < word.length) {
    const next = isOfKey(word[to]!) ? to + 1 : endOfMask(word, to, hasDots)
    if (next === to) break
    to = next
  }
  return to
}

/** The end of a run of one mask that begins here; `at` itself where none does. */
function endOfMask(word: string, at: number, hasDots: boolean): number {
  const mask = word[at]!
  const isDot = DOTS.has(mask)
  if (!MASK.has(mask) && !(hasDots && isDot)) return at
  let end = at
  while (end < word.length && word[end] === mask) end++
  const least = mask === '…' ? 1 : /x/i.test(mask) ? MIN_CROSSES : MIN_MASK_CHARS
  return end - at >= least ? end : at
}

function isKey(before: string, after: string, mask: string): boolean {
  if (!DOTS.has(mask)) return before !== '' || after !== ''
  return before.length >= MIN_SHOWN_BESIDE_DOTS && (after.length >= MIN_SHOWN_BESIDE_DOTS || /[-_\d]/.test(before))
}

const isOfKey = (character: string) => /[A-Za-z0-9_-]/.test(character)

/**
 * Redacts keys that a provider has masked only in part (`sk-abc*****wxyz`), which error messages repeat. Redacts every
 * text of that form, whichever key it is: a rule that compared it with a key would reveal the key's beginning to
 * anybody who can have a text repeated.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes are within bounds, and this runs for each byte of all output */

const PLACEHOLDER = '<secret:masked>'

/** Characters used to mask others. */
const MASK = new Set('*•●·∙xX')
const DOTS = new Set('.…')

/** Fewer are punctuation, or emphasis in Markdown. */
const MIN_MASK_CHARS = 3
/** More repeated letters than words contain. */
const MIN_CROSSES = 4
/** Dots are a mask only next to this many characters of a key. */
const MIN_SHOWN_BESIDE_DOTS = 2

/** Dots are only dots in a message that does not mention keys. */
const ABOUT_KEYS = /key|token|credential|secret|bearer|authoriz|authentic|unauthor|password|permission|denied/i

/** Redacts masked keys in error messages. Runs in linear time. */
export function redactMaskedKeys(message: string): string {
  const hasDots = ABOUT_KEYS.test(message)
  return message
    .split(/(\s)/)
    .map((word) => redactWord(word, hasDots))
    .join('')
}

function redactWord(word: string, hasDots: boolean): string {
  let writtenText = ''
  let doneLength = 0
  for (let at = 0; at < word.length; at++) {
    const end = endOfMask(word, at, hasDots)
    if (end === at) continue
    let from = at
    while (from > doneLength && isOfKey(word[from - 1]!)) from--
    const to = endOfShown(word, end, hasDots)
    if (isKey(word.slice(from, at), word.slice(end, to), word[at]!)) {
      writtenText += word.slice(doneLength, from) + PLACEHOLDER
      doneLength = to
    }
    at = to - 1
  }
  return writtenText + word.slice(doneLength)
}

/** Returns the end of the same key: its visible parts and other masks. */
function endOfShown(word: string, from: number, hasDots: boolean): number {
  let to = from
  while (to < word.length) {
    const next = isOfKey(word[to]!) ? to + 1 : endOfMask(word, to, hasDots)
    if (next === to) break
    to = next
  }
  return to
}

/** Returns the end of a run of one mask that begins here; `at` itself if none does. */
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

/** Texts of files as they are shown to a model: on one line in a list, and without characters that nobody sees. */

/** Control characters and characters that are not visible or change the direction of writing. */
// oxlint-disable-next-line regexp/stack -- `onOneLine` cuts the text before
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu

/**
 * Characters that a person who reviews a file does not see, and a model reads: tags, marks for the direction of
 * writing, and characters without a width.
 */
const HIDDEN = /[\u{E0000}-\u{E007F}\u200B\u2060-\u2064\u202A-\u202E\u2066-\u2069\uFEFF]/gu

export const withoutHidden = (text: string): string => text.replaceAll(HIDDEN, '')

export function onOneLine(text: string, maxChars: number): string {
  // A slice first: a text may be much longer than what is kept.
  const line = text
    .slice(0, 4 * maxChars)
    .toWellFormed()
    .replaceAll(UNSEEN, ' ')
    .trim()
  return line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line
}

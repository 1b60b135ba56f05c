/** Makes one line of a text that a file wrote, so that it cannot look like anything else where it is listed. */

/** Control characters and characters that are not visible or change the direction of writing. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu

export function onOneLine(text: string, maxChars: number): string {
  // A slice first: a text may be much longer than what is kept.
  const line = text
    .slice(0, 4 * maxChars)
    .toWellFormed()
    .replaceAll(UNSEEN, ' ')
    .trim()
  return line.length > maxChars ? `${line.slice(0, maxChars).toWellFormed()}…` : line
}

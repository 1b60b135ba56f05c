/** Makes text of models, tools and files safe to print on a terminal. */
import { stripVTControlCharacters } from 'node:util'

/** Control characters except tab and newline, and marks that change the direction of text. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Without escape sequences, which could change the title, the clipboard or earlier lines. */
export const plainText = (text: string): string => stripVTControlCharacters(text).replaceAll(UNSAFE, '')

/** Of a sentence that quotes what others wrote. */
const MAX_LINE_CHARS = 1500

/** The text as one line of bounded length. */
export function oneLine(text: string): string {
  const line = plainText(text).replaceAll(/\s*\n\s*/g, ' ')
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}

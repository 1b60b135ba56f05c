/**
 * The last check before the terminal: a line has no control character except the styles of the chat. Each text is cleaned
 * where it is drawn, and this holds where that was forgotten, and for texts that the library draws.
 */

// oxlint-disable-next-line no-control-regex -- what terminals obey, and marks that change the direction of writing
const UNSAFE = /[\0-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
// oxlint-disable-next-line no-control-regex -- the styles of `theme.ts` and of the prompt, and the mark of the cursor
const OURS = /\x1b\[(?:(?:[0123479]|2[2-57-9]|3[1-469])?(?:;|(?=m))){1,20}m|\x1b_pi:c\x07/g
// oxlint-disable-next-line no-control-regex -- each of these characters
const UNSAFE_CHARACTERS = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export const safeLines = (lines: readonly string[]): string[] => lines.map(safeLine)

function safeLine(line: string): string {
  if (!UNSAFE.test(line) && !line.includes('\x1b')) return line
  const ours = line.match(OURS) ?? []
  const others = line.split(OURS).map((text) => text.replaceAll(UNSAFE_CHARACTERS, ''))
  return others.map((text, at) => text + (ours[at] ?? '')).join('')
}

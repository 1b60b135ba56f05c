/**
 * Makes text of models, tools, clients and files safe to print on a terminal. Everything that is written to one passes
 * through here: the server's log, and what `cli/terminal/terminal.ts` writes.
 */

/**
 * Sequences that end in the same line, and those of one character that programs with a screen write. Of any other only
 * the escape character is removed, so that it hides no text. Not `stripVTControlCharacters` of Node: it takes quadratic
 * time for titles without an end (43 s for 3 MB).
 */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- these are the characters to find
  /\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]+[0-~]|\x1b[78=>]/g

export const withoutSequences = (text: string): string => text.replaceAll(SEQUENCES, '')

/** Control characters except tab and newline, marks that change the direction of text, and other ends of lines. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Removes escape sequences, which could change the title, the clipboard or earlier lines. */
export const plainText = (text: string): string => withoutSequences(text).replaceAll(UNSAFE, '')

/** The length of a sentence that quotes what others wrote. */
const MAX_LINE_CHARS = 1500

/** The text as one line of bounded length. */
export function oneLine(text: string): string {
  const line = plainText(text).replaceAll(/\s+/g, (space) => (space.includes('\n') ? ' ' : space))
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}

/** Text of this program, with its styles and no other sequence. What it quotes is made plain before, styles too. */
export function styledText(text: string): string {
  const styles = text.match(STYLES) ?? []
  const others = text.split(STYLES).map((other) => other.replaceAll(UNSAFE, ''))
  return others.map((other, at) => other + (styles[at] ?? '')).join('')
}

/** The styles of the chat and of the prompt, and the mark of the cursor. */
// oxlint-disable-next-line no-control-regex -- they begin with one
const STYLES = /\x1b\[(?:(?:[0123479]|2[2-57-9]|3[1-469])?(?:;|(?=m))){1,20}m|\x1b_pi:c\x07/g

/** JSON that means the same, and that a terminal can show: JSON escapes only some of what terminals obey. */
export const safeJson = (json: string): string =>
  json.replaceAll(UNSAFE_IN_JSON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

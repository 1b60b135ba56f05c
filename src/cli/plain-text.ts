/** Makes text of models, tools and files safe to print on a terminal. */

/**
 * Sequences that end in the same line, and those of one character that programs with a screen write. Of any other only
 * the escape character is removed, so that it hides no text. Not `stripVTControlCharacters` of Node: it takes quadratic
 * time for titles without an end (43 s for 3 MB).
 */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- these are the characters to find
  /\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]+[0-~]|\x1b[78=>]/g

export const withoutSequences = (text: string): string => text.replaceAll(SEQUENCES, '')

/** Control characters except tab and newline, and marks that change the direction of text. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Without escape sequences, which could change the title, the clipboard or earlier lines. */
export const plainText = (text: string): string => withoutSequences(text).replaceAll(UNSAFE, '')

/** Of a sentence that quotes what others wrote. */
const MAX_LINE_CHARS = 1500

/** The text as one line of bounded length. */
export function oneLine(text: string): string {
  const line = plainText(text).replaceAll(/\s+/g, (space) => (space.includes('\n') ? ' ' : space))
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS)}…` : line
}

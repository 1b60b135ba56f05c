/** Text that a person types or pastes at a terminal. */

/** Finds what a reader sees as one character. */
export const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** A paste, as terminals mark it; the group is the text. */
export const PASTE = /^\x1b\[200~([\s\S]*)\x1b\[201~$/ // oxlint-disable-line no-control-regex -- how terminals mark a paste

export function withoutLastCharacter(text: string): string {
  const last = [...graphemes.segment(text)].at(-1)
  return last ? text.slice(0, last.index) : ''
}

/** Characters that a reader does not see, or that change the order of others: shown by their number where somebody decides. */

/** Controls other than tab and line feed, and all that is invisible or changes the direction of text. */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}\u{2028}\u{2029}\u{2800}]/gu

/** What changes the direction of text, so that it reads as another one. */
const TURNING = /[\u{61c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu

/** Returns the text with each hidden character as `⟦U+202E⟧`: for commands, paths, names and all that is decided about. */
export const showHidden = (text: string): string => text.replace(HIDDEN, numberOf)

/** The same for prose, in which emoji are joined by hidden characters: only what changes the direction is shown. */
export const showTurning = (text: string): string => text.replace(TURNING, numberOf)

function numberOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return `⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧`
}

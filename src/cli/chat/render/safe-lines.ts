/**
 * The last check before the terminal: a line has no control character except the styles of the chat. Each text is cleaned
 * where it is drawn, and this holds where that was forgotten, and for texts that the library draws.
 */
import { styledText } from '../../../telemetry/plain-text.ts'

// oxlint-disable-next-line no-control-regex -- a tab has no fixed width, and a line has no end inside
const LAYOUT = /[\t\n]/g

export const safeLines = (lines: readonly string[]): string[] =>
  lines.map((line) => styledText(line).replaceAll(LAYOUT, ''))

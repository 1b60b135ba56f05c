/** Lines that fit: every line that goes to the terminal is at most as wide as it is. */
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'

/** Wraps the text; each line begins with a prefix, the first one with another. */
export function wrapped(text: string, width: number, first = '', rest = first): string[] {
  const inner = Math.max(1, width - Math.max(visibleWidth(first), visibleWidth(rest)))
  return fit(
    text
      .split('\n')
      .flatMap((line) => wrapTextWithAnsi(line, inner))
      .map((line, at) => (at === 0 ? first : rest) + line),
    width,
  )
}

/** Cuts lines that are too wide, as in a terminal of a few columns. */
export const fit = (lines: readonly string[], width: number): string[] =>
  lines.map((line) => (visibleWidth(line) > width ? truncateToWidth(line, width, '') : line))

/** The text in one line. */
export const oneLine = (text: string, width: number): string => truncateToWidth(text, Math.max(1, width), '…')

/** Lines that fit: every line that goes to the terminal is at most as wide as it is. */
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@earendil-works/pi-tui'
import { graphemes } from '../../terminal/typed-text.ts'

/** Wraps the text; each line begins with a prefix, the first one with another. */
export function wrapText(text: string, width: number, first = '', rest = first): string[] {
  const inner = Math.max(1, width - Math.max(visibleWidth(first), visibleWidth(rest)))
  return fit(
    text
      .split('\n')
      .flatMap((line) => wrapTextWithAnsi(line, inner))
      .map((line, at) => (at === 0 ? first : rest) + line),
    width,
  )
}

/**
 * The same for what a person approves: it breaks lines at any character, so that none is lost, and `rest` begins each real
 * line after the first, while a broken line continues after a mark.
 */
export function exactLines(text: string, width: number, first: string, rest: string): string[] {
  const inner = Math.max(1, width - Math.max(visibleWidth(first), visibleWidth(rest), visibleWidth(CONTINUED)))
  const lines = text.split('\n').flatMap((line, at) => {
    const [begin = '', ...more] = brokenLine(line, inner)
    return [(at === 0 ? first : rest) + begin, ...more.map((part) => CONTINUED + part)]
  })
  return fit(lines, width)
}

const CONTINUED = '  … '
const ASCII = /^[ -~]*$/

function brokenLine(line: string, width: number): string[] {
  // A unit has at most two columns.
  if (line.length * 2 <= width) return [line]
  // oxlint-disable-next-line regexp/built -- each match begins where the one before ends
  if (ASCII.test(line)) return line.match(new RegExp(`.{1,${width}}`, 'g')) ?? ['']
  const parts: string[] = []
  let [part, usedColumns] = ['', 0]
  for (const { segment } of graphemes.segment(line)) {
    for (const unit of unitsOf(segment)) {
      const columns = visibleWidth(unit)
      if (usedColumns + columns > width && part !== '') {
        parts.push(part)
        ;[part, usedColumns] = ['', 0]
      }
      part += unit
      usedColumns += columns
    }
  }
  return [...parts, part]
}

/** Many terminals draw a flag as two characters, and a colour of skin as another one: a line would end out of sight. */
function unitsOf(segment: string): string[] {
  const points = Array.from(segment)
  if (points.length === 1) return points
  return points.reduce((sum, point) => sum + visibleWidth(point), 0) > visibleWidth(segment) ? points : [segment]
}

/** Cuts lines that are too wide, as in a terminal of a few columns. */
export const fit = (lines: readonly string[], width: number): string[] =>
  lines.map((line) => (visibleWidth(line) > width ? truncateToWidth(line, width, '') : line))

/** The text in one line. */
export const oneLine = (text: string, width: number): string => truncateToWidth(text, Math.max(1, width), '…')

/** Draws the lines of a diff: with a sign, so that they can be read without colours. */
import type { DiffLine } from '../state/diff.ts'
import { exactLines } from './lines.ts'
import type { Theme } from './theme.ts'

/** `clean` makes the text of the file safe to print. */
export function diffLinesFor(
  lines: readonly DiffLine[],
  { width, theme, clean }: { width: number; theme: Theme; clean: (text: string) => string },
): string[] {
  const styles = { '+': theme.green, '-': theme.red, ' ': theme.dim, '@': theme.cyan }
  const digits = Math.max(...lines.map(({ line }) => String(line ?? '').length), 0)
  return lines.flatMap(({ sign, text, line = '' }) => {
    const style = styles[sign]
    const mark = sign === '@' || digits === 0 ? sign : `${String(line).padStart(digits)} ${sign}`
    return exactLines(clean(text), width, `  ${mark} `, '    ').map(style)
  })
}

/** How texts are shown where somebody decides. */
import { showHidden, showTurning } from '../../contract/values/show-hidden.ts'

/** Shows commands, paths, names and all that is decided about. */
export const visible = (text: string): string => showHidden(text)

/** Shows prose, in which emoji are joined by hidden characters. */
export const visibleProse = (text: string): string => showTurning(text)

/** One line of at most so many characters, to name something by. */
export function short(text: string, length = 120): string {
  const line = visible(text.slice(0, 4 * length))
    .replaceAll(/\s+/g, ' ')
    .trim()
  return line.length > length ? `${line.slice(0, length - 1)}…` : line
}

/** Any value as text: JSON, unless it is a text. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
}

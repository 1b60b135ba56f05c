/** The components of a path that a shell word stands for. */
import type { Symbols } from './rules/globs.ts'
import { STAR } from './rules/globs.ts'
import type { PathParts } from './rules/path-pattern.ts'
import type { ShellWord } from './shell/shell-word.ts'

export const textOf = (part: Symbols): string =>
  part.map((symbol) => (typeof symbol === 'string' ? symbol : '*')).join('')

export const startsAnywhere = ({ pieces }: ShellWord): boolean => {
  const [first] = pieces
  return first !== undefined && 'hole' in first && first.hole === 'any'
}

/** The components from the first one with a hole; undefined when one of them may be anything. */
export function restOf({ pieces }: ShellWord): PathParts | undefined {
  const text: Symbols[number][] = []
  for (const piece of pieces) {
    if ('text' in piece) for (const symbol of piece.text) text.push(symbol)
    else if (piece.hole === 'any') return undefined
    else if (piece.hole === 'path') text.push(STAR, '/', STAR)
    else text.push(STAR)
  }
  const starAt = text.indexOf(STAR)
  const from = text.lastIndexOf('/', starAt) + 1
  const parts: Symbols[number][][] = [[]]
  for (const symbol of text.slice(from)) {
    if (symbol === '/') parts.push([])
    else parts.at(-1)?.push(symbol)
  }
  const namedParts = parts.filter((part) => part.length > 0)
  return namedParts.some((part) => textOf(part) === '..') ? undefined : namedParts
}

/** A word of a command line as far as it is known before it runs. */

/**
 * A hole is text that only the shell knows: `name` has no slash (a `*` of a glob), `path` is of such names (a `**`), `any`
 * may be anything.
 */
export type Piece = { readonly text: string } | { readonly hole: 'name' | 'path' | 'any' }

export type ShellWord = {
  readonly pieces: readonly Piece[]
  /** May become several words, or none. */
  readonly isMany: boolean
  /** Begins with an unquoted `~` or `~/`, which stands for the home directory. */
  readonly hasTilde: boolean
}

export const UNKNOWN_WORD: ShellWord = { pieces: [{ hole: 'any' }], isMany: true, hasTilde: false }

export const literalWord = (text: string): ShellWord => ({ pieces: [{ text }], isMany: false, hasTilde: false })

/** Undefined when part of the word is not known. */
export function literalOf({ pieces }: ShellWord): string | undefined {
  let whole = ''
  for (const piece of pieces) {
    if (!('text' in piece)) return undefined
    whole += piece.text
  }
  return whole
}

/** Returns what it takes to read the words once: their characters and their pieces. */
export function sizeOf(words: readonly ShellWord[]): number {
  let size = 0
  for (const { pieces } of words) for (const piece of pieces) size += 1 + ('text' in piece ? piece.text.length : 0)
  return size
}

/** The known text at the start of the word. */
export function startOf({ pieces }: ShellWord): string {
  let start = ''
  for (const piece of pieces) {
    if (!('text' in piece)) break
    start += piece.text
  }
  return start
}

/** The rest of the word after its first `length` known characters. */
export function wordAfter(word: ShellWord, length: number): ShellWord {
  let remainingLength = length
  const pieces = word.pieces.flatMap((piece): Piece[] => {
    if (remainingLength <= 0 || !('text' in piece)) return [piece]
    const text = piece.text.slice(remainingLength)
    remainingLength -= piece.text.length
    return text === '' ? [] : [{ text }]
  })
  return { pieces, isMany: word.isMany, hasTilde: false }
}

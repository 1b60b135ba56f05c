/** Turns a word of the parser into what is known of it. */
import type { DoubleQuotedChild, Word, WordPart } from 'unbash'
import type { Piece, ShellWord } from './shell-word.ts'

type ReadPieces = { readonly pieces: Piece[]; isMany: boolean }

export function readWord(word: Word): ShellWord {
  if (!word.parts) return withTilde({ pieces: [{ text: word.value }], isMany: false }, word.text)
  const readPieces: ReadPieces = { pieces: [], isMany: false }
  for (const part of word.parts) readPart(part, readPieces)
  // Empty quotes are a word of no characters.
  if (readPieces.pieces.length === 0) readPieces.pieces.push({ text: '' })
  return withTilde(readPieces, word.text)
}

/** Bash expands a `~` also behind the `=` and each `:` of a word that looks like an assignment. */
const ASSIGNED_TILDE = /^[A-Za-z_]\w*(\[[^\]]*\])?\+?=([^]*:)?~/

function withTilde({ pieces, isMany }: ReadPieces, givenText: string): ShellWord {
  const text = givenText.replaceAll('\\\n', '')
  if (ASSIGNED_TILDE.test(text)) {
    const start = text.slice(0, text.indexOf('=') + 1)
    return { pieces: [{ text: start }, { hole: 'any' }], isMany: isMany || text.includes('$'), hasTilde: false }
  }
  // `~name`, `~+` and `~-` stand for directories that are not known here.
  if (/^~[^/]/.test(text)) return { pieces: [{ hole: 'any' }], isMany, hasTilde: false }
  return { pieces, isMany, hasTilde: text.startsWith('~') }
}

function readPart(part: WordPart, readPieces: ReadPieces): void {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      readPieces.pieces.push({ text: part.value })
      return
    case 'DoubleQuoted':
      for (const child of part.parts) readQuoted(child, readPieces)
      return
    case 'Glob':
      addGlob(part.text, readPieces)
      readPieces.isMany = true
      return
    case 'ProcessSubstitution':
      // A pipe, not a file of anybody's.
      readPieces.pieces.push({ text: '/dev/fd/63' })
      return
    case 'SimpleExpansion':
      if (isNumber(part.text)) return void readPieces.pieces.push({ hole: 'name' })
      readPieces.pieces.push({ hole: 'any' })
      readPieces.isMany = true
      return
    default:
      readPieces.pieces.push({ hole: 'any' })
      readPieces.isMany = true
  }
}

/** `**` crosses directories where `globstar` is on. */
function addGlob(text: string, { pieces }: ReadPieces): void {
  const last = pieces.at(-1)
  const follows = last !== undefined && 'hole' in last
  if (follows) pieces.pop()
  pieces.push({ hole: follows || text.includes('/') ? 'any' : text.includes('**') ? 'path' : 'name' })
}

function readQuoted(child: DoubleQuotedChild, readPieces: ReadPieces): void {
  if (child.type === 'Literal') return void readPieces.pieces.push({ text: child.value })
  readPieces.pieces.push({ hole: child.type === 'SimpleExpansion' && isNumber(child.text) ? 'name' : 'any' })
  // `"$@"` and `"${a[@]}"` are many words even in quotes.
  if (child.type !== 'CommandExpansion' && child.type !== 'ArithmeticExpansion' && child.text.includes('@'))
    readPieces.isMany = true
}

/** One word of digits. `$!` may be none at all before a command has run in the background. */
const isNumber = (text: string): boolean => /^\$[?#$!]$/.test(text)

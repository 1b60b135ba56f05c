/**
 * Shows fence code with colours, by its language. Without the colours the lines are exactly those of the code. Own code, because
 * a highlighter of the field (highlight.js 11) takes a second for a line of some thousand letters, and the code is hostile.
 */
import type { Language } from './code-languages.ts'
import { languageNamed } from './code-languages.ts'
import type { Theme } from './theme.ts'

/** Longer code has one colour. */
const MAX_CODE_CHARS = 20_000

type Style = (text: string) => string

/** Undefined for a language that is not known, and for very long code. */
export function highlightedLines(code: string, info: string, theme: Theme): string[] | undefined {
  const language = code.length > MAX_CODE_CHARS ? undefined : languageNamed(info)
  if (language === undefined) return undefined
  if (language === 'diff') return code.split('\n').map((line) => styleOfChange(line, theme)(line))
  const lines = ['']
  for (const { text, style } of piecesOf(code, language, theme)) {
    for (const [at, part] of text.split('\n').entries()) {
      if (at > 0) lines.push('')
      lines[lines.length - 1] += style && part !== '' ? style(part) : part
    }
  }
  return lines
}

type Piece = { readonly text: string; readonly style: Style | undefined }

function* piecesOf(code: string, language: Language, theme: Theme): Generator<Piece> {
  for (const match of code.matchAll(language.pieces)) {
    const [text] = match
    yield { text, style: styleOf(match, code[match.index + text.length], language, theme) }
  }
}

function styleOf(
  [text = '', comment, string, number, word]: readonly (string | undefined)[],
  after: string | undefined,
  { keywords, ignoresCase, hasKeys }: Language,
  theme: Theme,
): Style | undefined {
  if (comment !== undefined) return theme.dim
  if (number !== undefined) return theme.yellow
  if (hasKeys && after === ':') return theme.cyan
  if (string !== undefined) return theme.green
  if (word === undefined) return undefined
  if (word.startsWith('<') || word.endsWith('>') || keywords.has(ignoresCase ? text.toLowerCase() : text))
    return theme.blue
  return after === '(' ? theme.cyan : undefined
}

function styleOfChange(line: string, theme: Theme): Style {
  if (line.startsWith('+')) return theme.green
  if (line.startsWith('-')) return theme.red
  return line.startsWith('@@') ? theme.cyan : (text) => text
}

/**
 * Markdown as tokens, in a time that grows with the length of the text only: what an agent writes must not be able to stop
 * the page. Pure.
 */
import type { Token, TokensList } from 'marked'
import { Lexer } from 'marked'

/** A text longer than that has no tokens, and is shown as it is. */
const MAX_CHARS = 200_000
/** The patterns for emphasis, links and addresses take the square of the length of a paragraph, so that they get parts of it. */
const MAX_INLINE_CHARS = 1000
/** Quotations and lists in each other; the lexer calls itself for each. */
const MAX_DEPTH = 16

export function markdownTokens(text: string): Token[] | undefined {
  if (text.length > MAX_CHARS) return undefined
  try {
    return new BoundedLexer({ gfm: true }).lex(text)
  } catch {
    return undefined
  }
}

export type LexedText = { readonly text: string; readonly tokens: readonly Token[] }

/** What follows can change the last blocks of a text, not those before them. */
const OPEN_BLOCKS = 3

/** The same for a text that begins with another one, as while it is written: only its last blocks are read again. */
export function tokensAfter(before: LexedText, text: string): Token[] | undefined {
  const keptTokens = before.tokens.slice(0, -OPEN_BLOCKS)
  const head = keptTokens.map(({ raw }) => raw).join('')
  if (!text.startsWith(before.text) || !text.startsWith(head)) return markdownTokens(text)
  const rest = text.length > MAX_CHARS ? undefined : markdownTokens(text.slice(head.length))
  return rest && [...keptTokens, ...rest]
}

class BoundedLexer extends Lexer {
  #depth = 0

  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[]
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList
  override blockTokens(src: string, tokens: Token[] = [], isClipped?: boolean): Token[] {
    if (this.#depth >= MAX_DEPTH) {
      tokens.push({ type: 'text', raw: src, text: src })
      return tokens
    }
    this.#depth++
    try {
      return super.blockTokens(src, tokens, isClipped)
    } finally {
      this.#depth--
    }
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    for (const part of partsOf(src)) super.inlineTokens(part, tokens)
    return tokens
  }
}

/** Cuts where a line ends, or a word, if there is such a place. */
function partsOf(src: string): string[] {
  const parts: string[] = []
  let rest = src
  while (rest.length > MAX_INLINE_CHARS) {
    const head = rest.slice(0, MAX_INLINE_CHARS)
    const end = Math.max(head.lastIndexOf('\n'), head.lastIndexOf(' ')) + 1 || MAX_INLINE_CHARS
    parts.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return [...parts, rest]
}

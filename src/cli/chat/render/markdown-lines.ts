/**
 * Draws Markdown, and as plain text what would take too long or nests too deep. The parser takes time that grows with the
 * product of marks and characters of a paragraph (100 KB of `*a ` take 150 s), and overflows the stack in deep lists.
 */
import { Markdown } from '@earendil-works/pi-tui'
import { wrapText } from './lines.ts'
import type { Theme } from './theme.ts'
import type { MarkdownTheme } from '@earendil-works/pi-tui'
import { highlightedLines } from './highlighted-code.ts'

export type MarkdownOptions = {
  readonly width: number
  readonly theme: Theme
  /** Marks multiplied by characters, over all paragraphs: 20 million take about a second. */
  readonly budget: number
}

export const COMPLETE_BUDGET = 4_000_000
/** An answer is drawn many times while it grows. */
export const STREAMED_BUDGET = 500_000

/** The parser begins another piece of a paragraph at these. */
const MARKS = /[*_~[<`!\\@]|https?:|ftp:|www\./gi
/** A line that begins with more marks of lists and quotes, or with such a mark after more spaces. */
const DEEP = /^(?:[ \t]*(?:[-+*>]|\d{1,9}[.)])){12}|^[ \t]{60,}\S/m
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/
/** A fence in HTML is text. */
const HTML = /^ {0,3}</m

type Piece = { readonly text: string; readonly isPlain: boolean }

export function markdownLines(text: string, { width, theme, budget }: MarkdownOptions): string[] {
  return piecesOf(text, budget).flatMap(({ text: part, isPlain }) => {
    if (isPlain) return wrapText(part, width)
    try {
      return new Markdown(part, 0, 0, markdownTheme(theme), undefined, { renderLatex: false }).render(width)
    } catch (error) {
      // The stack: nothing else depends on the text.
      if (error instanceof RangeError) return wrapText(part, width)
      throw error
    }
  })
}

/** Neighbours of the same kind are one piece: what a block means can depend on the one before. */
function piecesOf(text: string, budget: number): Piece[] {
  const pieces: Piece[] = []
  let remainingChars = budget
  for (const { text: block, isCode } of blocksOf(text)) {
    const cost = isCode ? 0 : costOf(block)
    const isPlain = cost > remainingChars
    if (!isPlain) remainingChars -= cost
    const last = pieces.at(-1)
    if (last?.isPlain === isPlain) pieces[pieces.length - 1] = { text: `${last.text}\n${block}`, isPlain }
    else pieces.push({ text: block, isPlain })
  }
  return pieces
}

const costOf = (block: string): number =>
  DEEP.test(block) ? Infinity : (block.match(MARKS)?.length ?? 0) * block.length

/**
 * A block goes up to each empty line, or is a whole fence code. Only a fence at the beginning of a line is sure to be
 * one.
 */
function blocksOf(text: string): { text: string; isCode: boolean }[] {
  const hasHtml = HTML.test(text)
  const blocks: { text: string; isCode: boolean }[] = []
  let lines: string[] = []
  let fence: string | undefined
  const end = (isCode: boolean) => {
    if (lines.length > 0) blocks.push({ text: lines.join('\n'), isCode })
    lines = []
  }
  for (const line of text.split('\n')) {
    const [, mark] = hasHtml ? [] : (FENCE.exec(line) ?? [])
    const opens = fence === undefined && mark !== undefined
    if (opens) end(false)
    lines.push(line)
    if (opens) fence = mark
    else if (fence !== undefined && isClosing(line, fence)) {
      end(true)
      fence = undefined
    } else if (fence === undefined && line.trim() === '') end(false)
  }
  end(fence !== undefined)
  return blocks
}

const isClosing = (line: string, fence: string): boolean => {
  const mark = line.trim()
  return mark.startsWith(fence) && mark === fence.charAt(0).repeat(mark.length) && !/^ {4}/.test(line)
}

function markdownTheme(theme: Theme): MarkdownTheme {
  return {
    heading: (text) => theme.bold(theme.cyan(text)),
    link: theme.underline,
    linkUrl: theme.dim,
    code: theme.cyan,
    codeBlock: theme.green,
    codeBlockBorder: theme.dim,
    highlightCode: (code, info = '') =>
      highlightedLines(code, info, theme) ?? code.split('\n').map((line) => theme.green(line)),
    quote: theme.italic,
    quoteBorder: theme.dim,
    hr: theme.dim,
    listBullet: theme.cyan,
    bold: theme.bold,
    italic: theme.italic,
    strikethrough: theme.strike,
    underline: theme.underline,
  }
}

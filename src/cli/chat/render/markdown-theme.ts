/** The styles of Markdown. */
import type { MarkdownTheme } from '@earendil-works/pi-tui'
import { highlightedLines } from './highlighted-code.ts'
import type { Theme } from './theme.ts'

export function markdownTheme(theme: Theme): MarkdownTheme {
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

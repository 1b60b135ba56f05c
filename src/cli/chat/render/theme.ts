/** The styles of the chat. Without colours they are plain text, and every meaning is in the words and marks as well. */
import type { EditorTheme, MarkdownTheme, SelectListTheme } from '@earendil-works/pi-tui'

type Style = (text: string) => string

export type Theme = Readonly<
  Record<'dim' | 'bold' | 'italic' | 'underline' | 'strike' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan', Style>
>

const sgr =
  (on: number, off: number): Style =>
  (text) =>
    `\x1b[${on}m${text}\x1b[${off}m`

const plain: Style = (text) => text

const COLORED: Theme = {
  dim: sgr(2, 22),
  bold: sgr(1, 22),
  italic: sgr(3, 23),
  underline: sgr(4, 24),
  strike: sgr(9, 29),
  red: sgr(31, 39),
  green: sgr(32, 39),
  yellow: sgr(33, 39),
  blue: sgr(34, 39),
  cyan: sgr(36, 39),
}

const PLAIN: Theme = {
  dim: plain,
  bold: plain,
  italic: plain,
  underline: plain,
  strike: plain,
  red: plain,
  green: plain,
  yellow: plain,
  blue: plain,
  cyan: plain,
}

export const createTheme = (color: boolean): Theme => (color ? COLORED : PLAIN)

export function markdownTheme(theme: Theme): MarkdownTheme {
  return {
    heading: (text) => theme.bold(theme.cyan(text)),
    link: theme.underline,
    linkUrl: theme.dim,
    code: theme.cyan,
    codeBlock: theme.green,
    codeBlockBorder: theme.dim,
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

const selectListTheme = (theme: Theme): SelectListTheme => ({
  selectedPrefix: theme.cyan,
  selectedText: theme.bold,
  description: theme.dim,
  scrollInfo: theme.dim,
  noMatch: theme.dim,
})

export const editorTheme = (theme: Theme): EditorTheme => ({
  borderColor: theme.dim,
  selectList: selectListTheme(theme),
})

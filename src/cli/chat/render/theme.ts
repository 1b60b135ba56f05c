/** The styles of the chat. Without colours they are plain text, and every meaning is in the words and marks as well. */
import type { EditorTheme, SelectListTheme } from '@earendil-works/pi-tui'

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

export const THEMES = ['default', 'bright', 'plain'] as const
export type ThemeName = (typeof THEMES)[number]

/** `bright` has nothing dim, which some terminals draw so that it is hard to read. */
const NAMED: Readonly<Record<ThemeName, Theme>> = { default: COLORED, bright: { ...COLORED, dim: plain }, plain: PLAIN }

export const createTheme = (color: boolean, name: ThemeName = 'default'): Theme => ({
  ...(color ? NAMED[name] : PLAIN),
})

/** Changes the theme everywhere. */
export const changeStyles = (theme: Theme, name: ThemeName): Theme => Object.assign(theme, NAMED[name])

/** The list and the prompt keep their styles: they look them up each time. */
const selectListTheme = (theme: Theme): SelectListTheme => ({
  selectedPrefix: (text) => theme.cyan(text),
  selectedText: (text) => theme.bold(text),
  description: (text) => theme.dim(text),
  scrollInfo: (text) => theme.dim(text),
  noMatch: (text) => theme.dim(text),
})

export const editorTheme = (theme: Theme): EditorTheme => ({
  borderColor: (text) => theme.dim(text),
  selectList: selectListTheme(theme),
})

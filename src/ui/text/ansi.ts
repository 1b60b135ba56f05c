/**
 * Output of programs as runs of text with classes. Of the escape sequences of terminals only colours, bold, dim and underline
 * are followed. Everything else, such as titles, links and moves of the cursor, is removed.
 */
import { visible } from './visible.ts'

export type StyledText = { readonly text: string; readonly className: string }

/** CSI sequences, OSC and other strings, and single escapes. */
// oxlint-disable-next-line no-control-regex -- escape sequences begin with a control character
const ESCAPES = /\u001b\[([0-?]*)[ -/]*([@-~])?|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?/g

type Style = { bold: boolean; dim: boolean; underline: boolean; color: number | undefined }

const plain = (): Style => ({ bold: false, dim: false, underline: false, color: undefined })

export function ansiRuns(output: string): StyledText[] {
  const runs: StyledText[] = []
  let style = plain()
  let end = 0
  for (const match of output.matchAll(ESCAPES)) {
    push(runs, output.slice(end, match.index), style)
    end = match.index + match[0].length
    if (match[2] === 'm' && /^[\d;:]*$/.test(match[1] ?? '')) style = styleAfter(style, match[1] ?? '')
  }
  push(runs, output.slice(end), style)
  return runs
}

function push(runs: StyledText[], text: string, { bold, dim, underline, color }: Style): void {
  if (text === '') return
  const names = [bold && 'bold', dim && 'dim', underline && 'underline', color !== undefined && `ansi-${color}`]
  const shownText = visible(text.split('\n').map(lastState).join('\n'))
  runs.push({ text: shownText, className: names.filter(Boolean).join(' ') })
}

/** A progress bar writes over its line: what a terminal shows in the end. */
function lastState(line: string): string {
  const writtenLine = line.replace(/\r$/, '')
  return writtenLine.slice(writtenLine.lastIndexOf('\r') + 1)
}

function styleAfter(before: Style, codes: string): Style {
  const style = { ...before }
  const numbers = codes.split(/[;:]/).map(Number)
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i] ?? 0
    if (code === 38 || code === 48) {
      // 256 colours and RGB: the eight colours are what has enough contrast in both looks.
      i += numbers[i + 1] === 5 ? 2 : 4
    } else apply(style, code)
  }
  return style
}

function apply(style: Style, code: number): void {
  if (code === 0) Object.assign(style, plain())
  else if (code === 1) style.bold = true
  else if (code === 2) style.dim = true
  else if (code === 4) style.underline = true
  else if (code === 22) style.bold = style.dim = false
  else if (code === 24) style.underline = false
  else if (code === 39) style.color = undefined
  else if (code >= 30 && code <= 37) style.color = code - 30
  else if (code >= 90 && code <= 97) style.color = code - 90
}

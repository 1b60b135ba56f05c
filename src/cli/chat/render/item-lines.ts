/** Draws the items of the transcript: messages, answers, tool calls and notices. */
import { Markdown } from '@earendil-works/pi-tui'
import type { AnswerItem, CallItem, Item, NoticeItem, UserItem } from '../state/chat-state.ts'
import { cleanLine, cleanText } from '../state/clean-text.ts'
import { diffOfCall } from '../state/diff.ts'
import { titleOf } from '../state/tool-text.ts'
import { diffLinesFor } from './diff-lines.ts'
import { fit, oneLine, wrapped } from './lines.ts'
import type { StreamedMarkdown } from './streamed-markdown.ts'
import type { Theme } from './theme.ts'
import { markdownTheme } from './theme.ts'

export type DrawOptions = {
  readonly width: number
  readonly theme: Theme
  /** Shows all lines of tools. */ readonly isExpanded: boolean
  /** Answers that are still written. */
  readonly streamed: StreamedMarkdown
}

/** Lines shown of a tool. All of them are shown after Ctrl+O. */
const SHORT_OUTPUT = 5
const SHORT_DIFF = 14
const EXPANDED = 1000
/** Longer texts take too long to draw each time that they grow. */
const MAX_ANSWER_CHARS = 100_000
const MAX_TITLE_LINES = 4

export function linesOfItem(item: Item, look: DrawOptions): string[] {
  switch (item.kind) {
    case 'user':
      return ['', ...userLines(item, look)]
    case 'answer':
      return answerLines(item, look)
    case 'call':
      return ['', ...callLines(item, look)]
    case 'notice':
      return ['', ...noticeLines(item, look)]
    default:
      return item satisfies never
  }
}

function userLines({ text, images, sender }: UserItem, { width, theme }: DrawOptions): string[] {
  const marks = images === 0 ? '' : ` [${images === 1 ? 'an image' : `${images} images`}]`
  const from = sender === undefined ? '' : `${cleanLine(sender)}: `
  return wrapped(from + cleanText(text) + marks, width, '> ', '  ').map(theme.bold)
}

function answerLines(item: AnswerItem, { width, theme, isExpanded, streamed }: DrawOptions): string[] {
  const whole = cleanText(item.parts.join('\n\n')).trim()
  if (whole === '') return []
  if (item.isReasoning) return isExpanded ? ['', ...wrapped(whole, width, '  ').map(theme.dim)] : []
  const cut = whole.length - MAX_ANSWER_CHARS
  const text = cut > 0 ? `[${cut} characters above are not shown]\n\n${whole.slice(cut)}` : whole
  const agent = item.agent === undefined ? [] : wrapped(`${cleanLine(item.agent)}:`, width).map(theme.bold)
  const draw = (part: string) =>
    new Markdown(part, 0, 0, markdownTheme(theme), undefined, { renderLatex: false }).render(width)
  if (item.isComplete) streamed.forget(item.messageId)
  const lines = item.isComplete ? draw(text) : streamed.lines(item.messageId, text, width, draw)
  return ['', ...agent, ...fit(lines, width)]
}

function callLines(item: CallItem, look: DrawOptions): string[] {
  const { width, theme } = look
  const agent = item.agent === undefined ? '' : `${cleanLine(item.agent)}: `
  const name = theme.bold(agent + cleanLine(item.name))
  if (item.input === undefined)
    return [oneLine(`• ${name} ${theme.dim(`(writing, ${item.written} characters)`)}`, width)]
  const title = cleanText(titleOf(item.input)).trim()
  const head = wrapped(`${name} ${title}`.trimEnd(), width, `${markOf(item, theme)} `, '  ')
  return [...shorten(head, MAX_TITLE_LINES, look), ...diffPart(item, look), ...outputPart(item, look)]
}

function markOf({ result, decision }: CallItem, theme: Theme): string {
  if (decision === 'deny' || result?.isError === true) return theme.red('✗')
  return result ? theme.green('✓') : theme.yellow('•')
}

function diffPart(item: CallItem, look: DrawOptions): string[] {
  const diff = item.result?.isError === true ? undefined : diffOfCall(item.input)
  if (!diff) return []
  return shorten(diffLinesFor(diff.lines, { ...look, clean: cleanText }), SHORT_DIFF, look)
}

/** While a tool runs, the end of its output; afterwards its beginning, or the end of what a command has printed. */
function outputPart(item: CallItem, look: DrawOptions): string[] {
  const { width, theme } = look
  const text = cleanText(item.result ? item.result.text : item.output).trimEnd()
  if (text === '') return []
  if (item.result && !item.result.isError && diffOfCall(item.input)) return []
  const style = item.result?.isError === true ? theme.red : theme.dim
  const all = wrapped(text, width, '  ').map(style)
  const isCommand = titleOf(item.input) !== '' && item.name.toLowerCase().includes('bash')
  return isCommand || !item.result ? lastOf(all, look) : shorten(all, SHORT_OUTPUT, look)
}

function shorten(lines: string[], limit: number, { isExpanded, theme, width }: DrawOptions): string[] {
  const shown = isExpanded ? EXPANDED : limit
  if (lines.length <= shown + 1) return lines
  return [...lines.slice(0, shown), moreLine(lines.length - shown, isExpanded, theme, width)]
}

function lastOf(lines: string[], { isExpanded, theme, width }: DrawOptions): string[] {
  const shown = isExpanded ? EXPANDED : SHORT_OUTPUT
  if (lines.length <= shown + 1) return lines
  return [moreLine(lines.length - shown, isExpanded, theme, width), ...lines.slice(-shown)]
}

function moreLine(count: number, isExpanded: boolean, theme: Theme, width: number): string {
  return theme.dim(oneLine(`  … ${count} more lines${isExpanded ? '' : ' (Ctrl+O shows them)'}`, width))
}

function noticeLines({ tone, text }: NoticeItem, { width, theme }: DrawOptions): string[] {
  const style = { info: theme.dim, warning: theme.yellow, error: theme.red }[tone]
  const mark = { info: '', warning: '! ', error: 'Error: ' }[tone]
  return wrapped(mark + cleanText(text), width).map(style)
}

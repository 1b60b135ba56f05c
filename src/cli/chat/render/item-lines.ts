/** Draws the items of the transcript: messages, answers, tool calls and notices. */
import type { AnswerItem, CallItem, Item, NoticeItem, UserItem } from '../state/chat-state.ts'
import { endOf, startOf } from '../state/bounded.ts'
import { cleanLine, cleanText } from '../state/clean-text.ts'
import { diffOfCall } from '../state/diff.ts'
import { numberedLines } from '../state/diff-numbers.ts'
import { SHELL_MARK } from '../state/shell-command.ts'
import { titleOf } from '../../../contract/events/call-title.ts'
import { diffLinesFor } from './diff-lines.ts'
import { fit, oneLine, wrapText } from './lines.ts'
import { COMPLETE_BUDGET, markdownLines, STREAMED_BUDGET } from './markdown-lines.ts'
import type { StreamedMarkdown } from './streamed-markdown.ts'
import type { Theme } from './theme.ts'

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
/** The lines of one answer. */
const MAX_ANSWER_LINES = 2000
const MAX_TITLE_LINES = 4
/** Fewer characters fit into the lines of a title; so many are wrapped for them. */
const MAX_TITLE_CHARS = 4000
/** The lines of one message or notice. */
const MAX_TEXT_LINES = 200

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

function userLines({ text, images, sender, delivery }: UserItem, look: DrawOptions): string[] {
  const { width, theme } = look
  const marks = images === 0 ? '' : ` [${images === 1 ? 'an image' : `${images} images`}]`
  const from = sender === undefined ? '' : `${cleanLine(sender)}: `
  const lines = wrapText(from + cleanText(startOf(text)) + marks, width, '> ', '  ').map(theme.bold)
  return [...shorten(lines, MAX_TEXT_LINES, look), ...deliveryLines(delivery, look)]
}

function deliveryLines(delivery: UserItem['delivery'], { width, theme }: DrawOptions): string[] {
  if (delivery === undefined) return []
  return [delivery === 'sending' ? theme.dim(oneLine('  sending…', width)) : theme.red(oneLine('  not sent', width))]
}

function answerLines(item: AnswerItem, look: DrawOptions): string[] {
  const { width, theme, isExpanded, streamed } = look
  const { text: end, cut } = endOf(item.parts.join('\n\n'))
  const text = cleanText(end).trim()
  if (text === '') return []
  if (item.isReasoning)
    return isExpanded ? ['', ...shorten(wrapText(text, width, '  ').map(theme.dim), MAX_TEXT_LINES, look)] : []
  const agent = item.agent === undefined ? [] : wrapText(`${cleanLine(item.agent)}:`, width).map(theme.bold)
  const draw = (part: string) =>
    markdownLines(part, { width, theme, budget: item.isComplete ? COMPLETE_BUDGET : STREAMED_BUDGET })
  if (item.isComplete) streamed.forget(item.messageId)
  const lines = item.isComplete ? draw(text) : streamed.lines(item.messageId, text, width, draw)
  const isCut = cut > 0 || item.isCut === true || lines.length > MAX_ANSWER_LINES
  const note = isCut ? [theme.dim(oneLine('… the beginning of this answer is not shown', width))] : []
  return ['', ...agent, ...note, ...fit(lines.slice(-MAX_ANSWER_LINES), width)]
}

function callLines(item: CallItem, look: DrawOptions): string[] {
  const { width, theme } = look
  const agent = item.agent === undefined ? '' : `${cleanLine(item.agent)}: `
  const name = theme.bold(agent + cleanLine(item.name))
  if (item.input === undefined)
    return [oneLine(`• ${name} ${theme.dim(`(writing, ${item.written} characters)`)}`, width)]
  const title = cleanText(titleOf(item.name, item.input).slice(0, MAX_TITLE_CHARS)).trim()
  const head = wrapText(`${name} ${title}`.trimEnd(), width, `${markOf(item, theme)} `, '  ')
  const note = item.note === undefined ? [] : wrapText(cleanText(item.note), width, '  ').map(theme.yellow)
  return [...shorten(head, MAX_TITLE_LINES, look), ...note, ...diffPart(item, look), ...outputPart(item, look)]
}

function markOf({ result, decision }: CallItem, theme: Theme): string {
  if (decision === 'deny' || result?.isError === true) return theme.red('✗')
  return result ? theme.green('✓') : theme.yellow('•')
}

function diffPart(item: CallItem, look: DrawOptions): string[] {
  const diff = item.result?.isError === true ? undefined : diffOfCall(item.input)
  if (!diff) return []
  return shorten(diffLinesFor(numberedLines(item.input, item.starts), { ...look, clean: cleanText }), SHORT_DIFF, look)
}

/**
 * Shows the end of the output while a tool runs; afterwards its beginning, or the end of what a command has printed.
 */
function outputPart(item: CallItem, look: DrawOptions): string[] {
  const { width, theme } = look
  const text = cleanText(item.result ? item.result.text : item.output).trimEnd()
  if (text === '') return []
  if (item.result && !item.result.isError && diffOfCall(item.input)) return []
  const style = item.result?.isError === true ? theme.red : theme.dim
  const all = wrapText(text, width, '  ').map(style)
  const isCommand =
    titleOf(item.name, item.input) !== '' && (item.name === SHELL_MARK || item.name.toLowerCase().includes('bash'))
  return isCommand || !item.result ? lastOf(all, look) : shorten(all, SHORT_OUTPUT, look)
}

function shorten(lines: string[], limit: number, { isExpanded, theme, width }: DrawOptions): string[] {
  const shownCount = isExpanded ? EXPANDED : limit
  if (lines.length <= shownCount + 1) return lines
  return [...lines.slice(0, shownCount), moreLine(lines.length - shownCount, isExpanded, theme, width)]
}

function lastOf(lines: string[], { isExpanded, theme, width }: DrawOptions): string[] {
  const shownCount = isExpanded ? EXPANDED : SHORT_OUTPUT
  if (lines.length <= shownCount + 1) return lines
  return [moreLine(lines.length - shownCount, isExpanded, theme, width), ...lines.slice(-shownCount)]
}

function moreLine(count: number, isExpanded: boolean, theme: Theme, width: number): string {
  return theme.dim(oneLine(`  … ${count} more lines${isExpanded ? '' : ' (Ctrl+O shows them)'}`, width))
}

function noticeLines({ tone, text }: NoticeItem, look: DrawOptions): string[] {
  const style = { info: look.theme.dim, warning: look.theme.yellow, error: look.theme.red }[tone]
  const mark = { info: '', warning: '! ', error: 'Error: ' }[tone]
  return shorten(wrapText(mark + cleanText(startOf(text)), look.width).map(style), MAX_TEXT_LINES, look)
}

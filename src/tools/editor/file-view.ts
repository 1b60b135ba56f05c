/**
 * Shows text and directories in the editor: lines numbered as by `cat -n`, limited in size, with a note about omitted
 * parts.
 */
import type { Listing } from '../../files/directory-listing.ts'
import { MAX_LISTED, MAX_LISTED_CHARS } from '../../files/directory-listing.ts'
import { EditorError } from './editor-faults.ts'
import type { Edit } from './text-edit.ts'
import { countLines, lineAt, lineStart } from './text-edit.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'

/** Maximum number of characters of a file per view; the next call can request the following lines. */
export const MAX_VIEW_CHARS = 32_000

/** The limit per line, so that a file without line ends does not fill the whole view. */
export const MAX_LINE_CHARS = 4000

/**
 * No secret is longer, in any form: one that begins in the shown part of a line is complete within this much of the
 * rest.
 */
const MAX_SECRET_CHARS = 1024 * 1024

/** Lines shown before and after an edit. */
const SNIPPET_CONTEXT = 4

export type View = { readonly text: string; readonly isCut: boolean }

export type Redact = (text: string) => Promise<string>

/** Limits of one line, and of all lines by `sizeOf`. */
type ViewBounds = { readonly lineChars: number; readonly size: number; readonly sizeOf: (line: string) => number }

const VIEW_BOUNDS: ViewBounds = { lineChars: MAX_LINE_CHARS, size: MAX_VIEW_CHARS, sizeOf: (line) => line.length }

/**
 * Shows a file or a range of its lines: both ends are inclusive, -1 is the last line. Throws an `EditorError` for lines
 * that do not exist.
 */
export async function showText(
  path: string,
  text: string,
  range: readonly number[] | undefined,
  redact: Redact,
): Promise<View> {
  const count = countLines(text)
  if (count === 0) return { text: `The file ${path} is empty.`, isCut: false }
  const { first, last, note } = linesToShow(range, count)
  const view = await showLines(`Here's the result of running \`cat -n\` on ${path}:`, text, { first, last }, redact)
  return { ...view, text: note + view.text }
}

export const viewOutcome = ({ text, isCut }: View): ToolOutcome => ({ output: text, ...(isCut && { truncated: true }) })

type Lines = { readonly first: number; readonly last: number }

/** Shows lines `first` to `last`, as far as they fit; the range must be inside the text. */
async function showLines(title: string, text: string, { first, last }: Lines, redact: Redact): Promise<View> {
  const { lines, isCut } = await numberLines(text, { first, last }, redact)
  const shownTo = first + lines.length - 1
  const rest =
    shownTo < last
      ? [`[Lines ${shownTo + 1} to ${last} did not fit; see them with view_range [${shownTo + 1}, ${last}].]`]
      : []
  return { text: [title, ...lines, ...rest, ''].join('\n'), isCut }
}

/** Shows the inserted lines with some context; `text` is the edited text. */
export async function showEdit(
  path: string,
  text: string,
  { start, replacement }: Edit,
  redact: Redact,
): Promise<View> {
  const count = countLines(text)
  if (count === 0) return { text: 'It is empty now.\n', isCut: false }
  const first = Math.max(1, lineAt(text, start) - SNIPPET_CONTEXT)
  const last = Math.min(count, lineAt(text, start + replacement.length) + SNIPPET_CONTEXT)
  return await showLines(
    `Here's the result of running \`cat -n\` on a snippet of ${path}:`,
    text,
    { first, last },
    redact,
  )
}

export function showDirectory(path: string, { entries, hidden, isCut }: Listing): View {
  const root = path.endsWith('/') ? path : `${path}/`
  const notes = [
    isCut &&
      `[There are more; at most ${MAX_LISTED} are listed, and ${MAX_LISTED_CHARS} characters. View one of the directories, or use find.]`,
    hidden > 0 &&
      `${hidden} hidden files/directories in this directory are excluded. You can use 'ls -la ${path}' to see them.`,
  ].filter((note) => note !== false)
  const title = `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:`
  const text = [title, root, ...entries.map((entry) => root + entry), ...(notes.length ? ['', ...notes] : []), ''].join(
    '\n',
  )
  return { text, isCut }
}

function linesToShow(
  range: readonly number[] | undefined,
  count: number,
): { first: number; last: number; note: string } {
  if (!range) return { first: 1, last: count, note: '' }
  const invalid = (why: string) => new EditorError(`Invalid \`view_range\`: [${range.join(', ')}]. ${why}`)
  const [first, lastWanted] = range
  if (first === undefined || lastWanted === undefined || range.length !== 2)
    throw invalid('It should be a list of two integers.')
  if (first < 1 || first > count)
    throw invalid(`Its first element \`${first}\` should be within the range of lines of the file: [1, ${count}].`)
  if (lastWanted !== -1 && lastWanted < first)
    throw invalid(
      `Its second element \`${lastWanted}\` should be -1, or greater than or equal to the first element \`${first}\`.`,
    )
  const note =
    lastWanted > count ? `NOTE: We only show up to ${count} since there're only ${count} lines in this file.\n` : ''
  return { first, last: lastWanted === -1 ? count : Math.min(lastWanted, count), note }
}

export async function numberLines(
  text: string,
  { first, last }: Lines,
  redact: Redact,
  { lineChars, size, sizeOf }: ViewBounds = VIEW_BOUNDS,
): Promise<{ lines: string[]; isCut: boolean }> {
  const lines: string[] = []
  let room = size
  let isCut = false
  let at = lineStart(text, first - 1)
  for (let number = first; number <= last; number++) {
    const end = text.indexOf('\n', at)
    const line = withoutReturn(text.slice(at, end === -1 ? undefined : end))
    const shownLine = `${String(number).padStart(6)}\t${await shorten(line, lineChars, redact)}`
    room -= sizeOf(shownLine) + 1
    // Show at least one line, however long: an empty view would never get further.
    if (room < 0 && lines.length > 0) return { lines, isCut: true }
    isCut ||= line.length > lineChars
    lines.push(shownLine)
    at = end + 1
  }
  return { lines, isCut }
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line)

async function shorten(line: string, most: number, redact: Redact): Promise<string> {
  if (line.length <= most) return line
  const redactedLine = await redact(line.slice(0, most + MAX_SECRET_CHARS))
  const shownLine = redactedLine.slice(0, most).toWellFormed()
  return `${shownLine} [… ${line.length - most} more characters in this line]`
}

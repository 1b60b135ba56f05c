/** How the editor shows text and directories: lines numbered as by `cat -n`, bounded, and saying what was left out. */
import type { Listing } from '../workspace/editor-files.ts'
import { MAX_LISTED } from '../workspace/editor-files.ts'
import { countLines, lineStart } from './text-edit.ts'

/** A view shows at most so many characters of a file; the next call can ask for the lines after. */
export const MAX_VIEW_CHARS = 32_000

/** Of one line, so that a file without line ends does not take the whole view. */
export const MAX_LINE_CHARS = 4000

/** Lines shown before and after an edit. */
const SNIPPET_CONTEXT = 4

export type View = { readonly text: string; readonly isCut: boolean }

/** Lines `first` to `last`, as far as they fit; the range must lie in the text. */
export function showLines(title: string, text: string, first: number, last: number): View {
  const { lines, isCut } = numberLines(text, first, last)
  const shownTo = first + lines.length - 1
  const rest =
    shownTo < last
      ? [`[Lines ${shownTo + 1} to ${last} did not fit; see them with view_range [${shownTo + 1}, ${last}].]`]
      : []
  return { text: [title, ...lines, ...rest, ''].join('\n'), isCut }
}

/** The lines of `text` that an edit has put in, from offset `start` to `end`, with some around them. */
export function showSnippet(
  path: string,
  text: string,
  { firstLine, lastLine }: { firstLine: number; lastLine: number },
): View {
  const count = countLines(text)
  const first = Math.max(1, firstLine - SNIPPET_CONTEXT)
  const last = Math.min(count, lastLine + SNIPPET_CONTEXT)
  if (count === 0) return { text: `It is empty now.\n`, isCut: false }
  return showLines(`Here's the result of running \`cat -n\` on a snippet of ${path}:`, text, first, last)
}

export function showDirectory(path: string, { entries, hidden, isCut }: Listing): View {
  const root = path.endsWith('/') ? path : `${path}/`
  const notes = [
    isCut && `[There are more; at most ${MAX_LISTED} are listed. View one of the directories, or use find.]`,
    hidden > 0 &&
      `${hidden} hidden files/directories in this directory are excluded. You can use 'ls -la ${path}' to see them.`,
  ].filter((note) => note !== false)
  const title = `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:`
  const text = [title, root, ...entries.map((entry) => root + entry), ...(notes.length ? ['', ...notes] : []), ''].join(
    '\n',
  )
  return { text, isCut }
}

function numberLines(text: string, first: number, last: number): { lines: string[]; isCut: boolean } {
  const lines: string[] = []
  let room = MAX_VIEW_CHARS
  let isCut = false
  let at = lineStart(text, first - 1)
  for (let number = first; number <= last; number++) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at, end === -1 ? undefined : end).replace(/\r$/, '')
    const shown = `${String(number).padStart(6)}\t${shorten(line)}`
    room -= shown.length + 1
    // At least one line, however long: a view that shows nothing leads nowhere.
    if (room < 0 && lines.length > 0) return { lines, isCut: true }
    isCut ||= line.length > MAX_LINE_CHARS
    lines.push(shown)
    at = end + 1
  }
  return { lines, isCut }
}

function shorten(line: string): string {
  if (line.length <= MAX_LINE_CHARS) return line
  const shown = line.slice(0, MAX_LINE_CHARS).toWellFormed()
  return `${shown} [… ${line.length - MAX_LINE_CHARS} more characters in this line]`
}

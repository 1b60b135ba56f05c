/** Greps with ripgrep: runs the search and lays out what it finds as the tool's modes want it. */
import type { FileWithText, TextLine, TextSearch } from '../../files/search/search-text.ts'
import { searchOneFile, searchText, unsearchedPaths } from '../../files/search/search-text.ts'
import { queryFault } from '../../files/search/ripgrep.ts'
import { EditorError } from '../editor/editor-faults.ts'
import type { GrepInput, GrepQuestion, GrepResult } from './grep-question.ts'

/** Throws an `EditorError` for a query that ripgrep does not take. */
export async function searchByRegex(ripgrep: string, question: GrepQuestion): Promise<GrepResult> {
  const { input, place } = question
  let isCut = false
  const search = searchFor(ripgrep, question, () => (isCut = true))
  const fault = await queryFault(ripgrep, search.query, place.signal)
  if (fault !== undefined) throw new EditorError(`ripgrep does not accept this search. ${fault}`)
  const foundFiles =
    place.only === undefined
      ? searchText(place.jail, place.directory, search)
      : searchOneFile(place.jail, place.only, search)
  const { lines, more } = await LAYOUTS[input.output_mode](foundFiles, question)
  const notes = [
    ...(more === '' ? [] : [`[${more}]`]),
    ...(isCut ? ['[The search was ended early; there may be more. Search a smaller directory.]'] : []),
    ...(place.only === undefined ? await largeFilesNote(search, question) : []),
  ]
  return { lines, notes, isCut: isCut || more !== '' }
}

function searchFor(ripgrep: string, { input, place, without }: GrepQuestion, onCut: () => void): TextSearch {
  const { pattern, glob, type, multiline, output_mode, head_limit } = input
  const isContent = output_mode === 'content'
  const both = isContent ? (input['-C'] ?? 0) : 0
  return {
    ripgrep,
    query: { pattern, ignoreCase: input['-i'], multiline, glob, type, without },
    context: {
      before: isContent ? (input['-B'] ?? both) : 0,
      after: isContent ? (input['-A'] ?? both) : 0,
      ...(output_mode === 'files_with_matches' && { mostPerFile: 1 }),
    },
    keptLines: isContent ? head_limit + 1 : 0,
    signal: place.signal,
    onCut,
  }
}

/** `more` says that not all is in the lines; empty when it is. */
type LaidOutLines = { readonly lines: readonly string[]; readonly more: string }

type Layout = (found: AsyncIterable<FileWithText>, asked: GrepQuestion) => Promise<LaidOutLines>

const LAYOUTS: Readonly<Record<GrepInput['output_mode'], Layout>> = {
  async content(foundFiles, { input, place, redact }) {
    const lines: string[] = []
    const hasContext = [input['-A'], input['-B'], input['-C']].some((count) => (count ?? 0) > 0)
    for await (const file of foundFiles) {
      let last: TextLine | undefined
      for (const line of file.lines) {
        if (lines.length >= input.head_limit) return { lines, more: `More than ${input.head_limit} lines match.` }
        if (hasContext && lines.length > 0 && line.line !== (last?.line ?? NaN) + 1) lines.push('--')
        lines.push(await describe(place.shown(file.path), line, input['-n'], redact))
        last = line
      }
    }
    return { lines, more: '' }
  },

  async files_with_matches(foundFiles, { input, place }) {
    const files: FileWithText[] = []
    for await (const file of foundFiles) files.push(file)
    files.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1))
    const lines = files.slice(0, input.head_limit).map(({ path }) => place.shown(path))
    return { lines, more: moreFiles(files.length, input.head_limit) }
  },

  async count(foundFiles, { input, place }) {
    const lines: string[] = []
    let [files, matches] = [0, 0]
    for await (const file of foundFiles) {
      files++
      matches += file.matches
      if (lines.length < input.head_limit) lines.push(`${place.shown(file.path)}:${file.matches}`)
    }
    if (files > 0) lines.push(`[${matches} matches in ${files} files]`)
    return { lines, more: moreFiles(files, input.head_limit) }
  },
}

const moreFiles = (files: number, limit: number) => (files > limit ? `${files - limit} more files match.` : '')

/** Characters of a line that are shown. */
const MAX_SHOWN_CHARS = 500

/** What is read of a longer line before it is cut: a secret in it must be whole to be found. */
const MAX_REDACTED_CHARS = 64 * 1024

async function describe(
  path: string,
  { line, text, isMatch }: TextLine,
  withNumbers: boolean,
  redact: GrepQuestion['redact'],
): Promise<string> {
  const mark = isMatch ? ':' : '-'
  return `${path}${mark}${withNumbers ? `${line}${mark}` : ''}${await shorten(text, redact)}`
}

async function shorten(text: string, redact: GrepQuestion['redact']): Promise<string> {
  if (text.length <= MAX_SHOWN_CHARS) return text
  const redactedText = await redact(text.slice(0, MAX_REDACTED_CHARS))
  return `${redactedText.slice(0, MAX_SHOWN_CHARS).toWellFormed()} [… ${text.length - MAX_SHOWN_CHARS} more characters]`
}

/** The number of large files that are named. */
const MAX_NAMED = 5

async function largeFilesNote(search: TextSearch, { place, input }: GrepQuestion): Promise<string[]> {
  // Ripgrep alone knows which of them a type or a pattern is for.
  if (input.glob !== undefined || input.type !== undefined) return []
  const large: string[] = []
  for await (const path of unsearchedPaths(place.directory, search)) large.push(place.shown(path))
  if (large.length === 0) return []
  const namedFiles = large.toSorted().slice(0, MAX_NAMED).join(', ')
  return [
    `[Not searched, as they have more than 16 MiB: ${namedFiles}${large.length > MAX_NAMED ? ' and others' : ''}.]`,
  ]
}

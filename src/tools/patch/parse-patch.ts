/** Parses the patch format that OpenAI's models are trained on (`*** Begin Patch`). Accesses no files. */
import { EditorError } from '../editor/editor-faults.ts'
import { withPlainLineEnds } from '../editor/line-ends.ts'

export type FilePatch =
  | { readonly kind: 'add'; readonly path: string; readonly lines: readonly string[] }
  | { readonly kind: 'delete'; readonly path: string }
  | { readonly kind: 'update'; readonly path: string; readonly moveTo?: string; readonly hunks: readonly Hunk[] }

/** The kept (` `), removed (`-`) and added (`+`) lines, in order. */
export type Hunk = {
  /** Lines of the file to find first, in order: the text after `@@`. */
  readonly contexts: readonly string[]
  readonly lines: readonly HunkLine[]
  /** True if the old lines are the last of the file. */
  readonly isAtEnd: boolean
}

export type HunkLine = { readonly kind: ' ' | '-' | '+'; readonly text: string }

const [BEGIN, END, END_OF_FILE] = ['*** Begin Patch', '*** End Patch', '*** End of File']
const [ADD, DELETE, UPDATE, MOVE] = ['*** Add File: ', '*** Delete File: ', '*** Update File: ', '*** Move to: ']

/** The permission gate looks at each of them before the patch is applied. */
const MAX_FILES = 500

/** Places to find in all files: each may take a search through all of a file. */
const MAX_PLACES = 1000

/** A patch repeats what it changes: no model writes so many lines. Each takes memory and time. */
const MAX_LINES = 100_000

/** Throws an `EditorError` that names the invalid line of the patch. */
export function parsePatch(input: string): FilePatch[] {
  const reader = new LineReader(patchLines(input))
  const files: FilePatch[] = []
  while (reader.line !== undefined) {
    // Ignore blank lines between the files of a patch.
    if (reader.line.trim() === '') reader.next()
    else files.push(parseFile(reader))
  }
  if (files.length === 0) throw new EditorError('The patch is empty: it names no file.')
  refuseTooMany(files)
  return files
}

function refuseTooMany(files: readonly FilePatch[]): void {
  if (files.length > MAX_FILES)
    throw new EditorError(`A patch changes at most ${MAX_FILES} files; send several patches.`)
  const hunks = files.flatMap((file) => (file.kind === 'update' ? file.hunks : []))
  const count = hunks.reduce((sum, { contexts }) => sum + 1 + contexts.length, 0)
  if (count > MAX_PLACES)
    throw new EditorError(`A patch has at most ${MAX_PLACES} hunks and lines after @@; send several patches.`)
}

/** Returns the lines between the markers, which may be in a here-document as for a shell. */
function patchLines(input: string): string[] {
  const lines = withPlainLineEnds(input)
    .trim()
    .split('\n', MAX_LINES + 1)
  if (lines.length > MAX_LINES) throw new EditorError(`A patch has at most ${MAX_LINES} lines; send several patches.`)
  const first = lines.findIndex((line) => line.trim() === BEGIN)
  const last = lines.findLastIndex((line) => line.trim() === END)
  const isHereDocument = first === 1 && /^(apply_patch\s*)?<<-?\s*['"]?EOF['"]?$/.test(lines[0]?.trim() ?? '')
  if (first !== 0 && !isHereDocument) throw new EditorError(`The first line of a patch must be "${BEGIN}".`)
  if (last < first || lines.slice(last + 1).some((line) => line.trim() !== 'EOF'))
    throw new EditorError(`The last line of a patch must be "${END}".`)
  return lines.slice(first + 1, last)
}

class LineReader {
  readonly #lines: readonly string[]
  #at = 0

  constructor(lines: readonly string[]) {
    this.#lines = lines
  }

  /** Undefined at the end. */
  get line(): string | undefined {
    return this.#lines[this.#at]
  }

  next(): void {
    this.#at++
  }

  /** Takes the line if it begins with the text, and returns the rest of it. */
  take(beginning: string): string | undefined {
    if (!this.line?.startsWith(beginning)) return undefined
    const rest = this.line.slice(beginning.length).trim()
    this.next()
    return rest
  }

  fault(what: string): EditorError {
    // The marker that begins the patch is line 1.
    const shownLine = JSON.stringify((this.line ?? '').slice(0, 200))
    return new EditorError(`The patch is invalid at line ${this.#at + 2}, ${shownLine}: ${what}`)
  }
}

function parseFile(reader: LineReader): FilePatch {
  const addedPath = reader.take(ADD)
  if (addedPath !== undefined) return { kind: 'add', path: requireName(reader, addedPath), lines: parseAdded(reader) }
  const deletedPath = reader.take(DELETE)
  if (deletedPath !== undefined) return { kind: 'delete', path: requireName(reader, deletedPath) }
  const updatedPath = reader.take(UPDATE)
  if (updatedPath === undefined)
    throw reader.fault(`expected "${ADD.trim()}", "${UPDATE.trim()}" or "${DELETE.trim()}" with a path.`)
  const path = requireName(reader, updatedPath)
  const moveTo = reader.take(MOVE)
  const hunks = parseHunks(reader)
  if (hunks.length === 0 && moveTo === undefined) throw reader.fault(`the update of ${path} changes nothing.`)
  return { kind: 'update', path, hunks, ...(moveTo !== undefined && { moveTo: requireName(reader, moveTo) }) }
}

function requireName(reader: LineReader, path: string): string {
  if (path === '') throw reader.fault('the line before it has no path.')
  return path
}

function parseAdded(reader: LineReader): string[] {
  const lines: string[] = []
  for (; reader.line !== undefined && !reader.line.startsWith('*** '); reader.next()) {
    if (reader.line.startsWith('+')) lines.push(reader.line.slice(1))
    else if (reader.line.trim() !== '') throw reader.fault('each line of a new file begins with "+".')
  }
  return lines
}

function parseHunks(reader: LineReader): Hunk[] {
  const hunks: Hunk[] = []
  while (reader.line !== undefined && !isHeader(reader.line)) {
    if (reader.line.trim() === '') {
      reader.next()
      continue
    }
    const hunk = { contexts: parseContexts(reader), lines: parseHunkLines(reader) }
    const isAtEnd = reader.take(END_OF_FILE) !== undefined
    if (hunk.lines.length === 0) throw reader.fault('a hunk has no lines; each begins with " ", "-" or "+".')
    hunks.push({ ...hunk, isAtEnd })
  }
  return hunks
}

function parseContexts(reader: LineReader): string[] {
  const contexts: string[] = []
  for (; reader.line?.startsWith('@@'); reader.next()) {
    const context = reader.line.slice(2).replace(/^ /, '')
    if (context.trim() !== '') contexts.push(context)
  }
  return contexts
}

function parseHunkLines(reader: LineReader): HunkLine[] {
  const lines: HunkLine[] = []
  for (; reader.line !== undefined && !isHeader(reader.line) && !isHunkEnd(reader.line); reader.next()) {
    const kind = reader.line === '' ? ' ' : reader.line[0]
    if (kind !== ' ' && kind !== '-' && kind !== '+')
      throw reader.fault('each line of a hunk begins with " " (kept), "-" (removed) or "+" (added).')
    lines.push({ kind, text: reader.line.slice(1) })
  }
  return lines
}

const isHunkEnd = (line: string) => line.startsWith('@@') || line.trim() === END_OF_FILE

const isHeader = (line: string) => [ADD, DELETE, UPDATE].some((header) => line.startsWith(header))

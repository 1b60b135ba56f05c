/**
 * Applies the hunks of a patch to a text. Searches the old lines of a hunk exactly, then without trailing white space,
 * then without white space at both ends, as Codex does. Kept lines are unchanged in the file, whatever white space the
 * patch has. Runs in linear time for each hunk.
 */
import { createPatientFinder } from '../../lib/text/find-text.ts'
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { EditorError } from '../editor/editor-faults.ts'
import type { Lines, Part } from './lines.ts'
import { readLines } from './lines.ts'
import type { Hunk, HunkLine } from './parse-patch.ts'

/** Throws an `EditorError` for a hunk whose lines are not in the text, and the reason of the signal when that is aborted. */
export async function patchText(
  path: string,
  text: string,
  hunks: readonly Hunk[],
  signal: AbortSignal,
): Promise<string> {
  const slices = createSlices()
  const lines = await readLines(text, slices)
  const search = new LineSearch(lines, slices)
  const patchedParts: (readonly Part[])[] = []
  let doneLines = 0
  for (const [number, hunk] of hunks.entries()) {
    signal.throwIfAborted()
    const locatedHunk = await locate(search, hunk, doneLines)
    if (!locatedHunk) throw new EditorError(explain(path, number + 1, hunk))
    patchedParts.push(lines.part(doneLines, locatedHunk.start), replaceLines(lines, locatedHunk))
    doneLines = locatedHunk.start + locatedHunk.lines.filter(isOld).length
  }
  const { count } = lines
  return joinParts([...patchedParts, lines.part(doneLines, count)].flat(), lines.endOf(0), lines.endOf(count - 1))
}

/** The text ends as before: with or without a line end. */
function joinParts(parts: readonly Part[], first: string | undefined, last: string | undefined): string {
  const lastEnd = last ?? '\n'
  const usual = first || '\n'
  return parts
    .map(({ text, end }, at) => text + (at === parts.length - 1 ? lastEnd && (end || usual) : end || usual))
    .join('')
}

const isOld = ({ kind }: HunkLine) => kind !== '+'

type LocatedHunk = { readonly start: number; readonly lines: readonly HunkLine[] }

async function locate(
  search: LineSearch,
  { contexts, lines, isAtEnd }: Hunk,
  from: number,
): Promise<LocatedHunk | undefined> {
  let start = from
  for (const context of contexts) {
    const foundAt = await search.find([context], start)
    if (foundAt === undefined) return undefined
    start = foundAt + 1
  }
  const old = lines.filter(isOld).map(({ text }) => text)
  // The new lines are inserted after the context, or at the end, if there are no old ones.
  if (old.length === 0) return { start: contexts.length > 0 ? start : search.count, lines }
  const foundAt = await search.find(old, start, isAtEnd)
  if (foundAt !== undefined) return { start: foundAt, lines }
  // An empty line at the end of a hunk is often only the space before the next one.
  const last = lines.at(-1)
  if (last?.kind !== ' ' || last.text !== '' || old.length === 1) return undefined
  const again = await search.find(old.slice(0, -1), start, isAtEnd)
  return again === undefined ? undefined : { start: again, lines: lines.slice(0, -1) }
}

function replaceLines(lines: Lines, { start, lines: changes }: LocatedHunk): Part[] {
  const result: Part[] = []
  let at = start
  for (const { kind, text } of changes) {
    if (kind === '+') result.push({ text, end: (lines.endOf(at) || lines.endOf(at - 1)) ?? '' })
    else at++
    if (kind === ' ') result.push(...lines.part(at - 1, at))
  }
  return result
}

type Form = (line: string) => string

const FORMS: readonly Form[] = [(line) => line, (line) => line.trimEnd(), (line) => line.trim()]

/** Lines of the file that are joined at a time: between two of these parts other work has a turn. */
const LINES_AT_A_TIME = 10_000

/** Finds lines in lines: as one text, in which each line is between two line ends. */
class LineSearch {
  readonly #lines: Lines
  readonly #slices: Slices
  readonly #forms = new Map<Form, { readonly text: string; readonly starts: Uint32Array }>()

  constructor(lines: Lines, slices: Slices) {
    this.#lines = lines
    this.#slices = slices
  }

  get count(): number {
    return this.#lines.count
  }

  /** Returns the index of the first matching line at or after line `from`; with `isAtEnd` preferably the last match. */
  async find(wantedLines: readonly string[], from: number, isAtEnd = false): Promise<number | undefined> {
    const last = this.count - wantedLines.length
    for (const form of FORMS) {
      const pattern = wantedLines.map(form)
      if (isAtEnd && last >= from && pattern.every((line, at) => line === form(this.#lines.textOf(last + at))))
        return last
      const foundAt = await this.#findIn(form, pattern, from)
      if (foundAt !== undefined) return foundAt
    }
    return undefined
  }

  async #findIn(form: Form, pattern: readonly string[], from: number): Promise<number | undefined> {
    if (from + pattern.length > this.count) return undefined
    const { text, starts } = await this.#formed(form)
    const find = createPatientFinder(text, `\n${pattern.join('\n')}\n`, this.#slices)
    const at = await find(starts[from] ?? 0)
    await this.#slices.rest()
    return at < 0 ? undefined : indexOfStart(starts, at)
  }

  async #formed(form: Form) {
    const knownForm = this.#forms.get(form)
    if (knownForm) return knownForm
    const starts = new Uint32Array(this.count)
    const texts = ['\n']
    let start = 0
    for (let first = 0; first < this.count; first += LINES_AT_A_TIME) {
      const some: string[] = []
      for (let at = first; at < Math.min(first + LINES_AT_A_TIME, this.count); at++) {
        const line = form(this.#lines.textOf(at))
        starts[at] = start
        start += line.length + 1
        some.push(line, '\n')
      }
      texts.push(some.join(''))
      await this.#slices.rest()
    }
    const formedText = { text: texts.join(''), starts }
    this.#forms.set(form, formedText)
    return formedText
  }
}

/** Returns the index of a number in an ascending list. */
function indexOfStart(starts: Uint32Array, wantedStart: number): number {
  let [low, high] = [0, starts.length - 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((starts[middle] ?? 0) < wantedStart) low = middle + 1
    else high = middle
  }
  return low
}

/** Longer hunks are quoted in part. */
const MAX_QUOTED_CHARS = 2000

function explain(path: string, number: number, { contexts, lines }: Hunk): string {
  const old = lines.filter(isOld).map(({ text }) => text)
  const wantedLines = [...contexts.map((context) => `@@ ${context}`), ...old]
  const quotedLines = wantedLines.join('\n').slice(0, MAX_QUOTED_CHARS).toWellFormed()
  return `Hunk ${number} of ${path} does not fit: these lines were not found after the hunk before it. Read the file and send the patch again.\n${quotedLines}`
}

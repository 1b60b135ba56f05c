/**
 * Applies the hunks of a patch to a text. Searches the old lines of a hunk exactly, then without trailing white space,
 * then without white space at both ends, as Codex does. Kept lines are unchanged in the file, whatever white space the
 * patch has. Runs in linear time for each hunk.
 */
import { createPatientFinder } from '../../lib/text/find-text.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { EditorError } from '../editor/editor-faults.ts'
import type { Hunk, HunkLine } from './parse-patch.ts'

/** Throws an `EditorError` for a hunk whose lines are not in the text, and the reason of the signal when that is aborted. */
export async function patchText(
  path: string,
  text: string,
  hunks: readonly Hunk[],
  signal: AbortSignal,
): Promise<string> {
  const lines = splitLines(text)
  const search = new LineSearch(lines.map((line) => line.text))
  const patched: (readonly Line[])[] = []
  let done = 0
  for (const [number, hunk] of hunks.entries()) {
    signal.throwIfAborted()
    const found = await locate(search, hunk, done)
    if (!found) throw new EditorError(explain(path, number + 1, hunk))
    patched.push(lines.slice(done, found.start), replaced(lines, found))
    done = found.start + found.lines.filter(isOld).length
  }
  return joinLines([...patched, lines.slice(done)].flat(), lines)
}

/** A line and its line end, which is empty only for the last. */
type Line = { readonly text: string; readonly end: string }

function splitLines(text: string): Line[] {
  return (text.match(/[^\n]+\n?|\n/g) ?? []).map((whole) => {
    const end = whole.endsWith('\r\n') ? '\r\n' : whole.endsWith('\n') ? '\n' : ''
    return { text: whole.slice(0, whole.length - end.length), end }
  })
}

/** The text ends as before: with or without a line end. */
function joinLines(lines: readonly Line[], before: readonly Line[]): string {
  const lastEnd = before.at(-1)?.end ?? '\n'
  const usual = before.at(0)?.end || '\n'
  return lines
    .map(({ text, end }, at) => text + (at === lines.length - 1 ? lastEnd && (end || usual) : end || usual))
    .join('')
}

const isOld = ({ kind }: HunkLine) => kind !== '+'

type Located = { readonly start: number; readonly lines: readonly HunkLine[] }

async function locate(
  search: LineSearch,
  { contexts, lines, isAtEnd }: Hunk,
  from: number,
): Promise<Located | undefined> {
  let start = from
  for (const context of contexts) {
    const found = await search.find([context], start)
    if (found === undefined) return undefined
    start = found + 1
  }
  const old = lines.filter(isOld).map(({ text }) => text)
  // Without old lines, the new ones are inserted after the context, or at the end.
  if (old.length === 0) return { start: contexts.length > 0 ? start : search.count, lines }
  const found = await search.find(old, start, isAtEnd)
  if (found !== undefined) return { start: found, lines }
  // An empty line at the end of a hunk is often only the space before the next one.
  const last = lines.at(-1)
  if (last?.kind !== ' ' || last.text !== '' || old.length === 1) return undefined
  const again = await search.find(old.slice(0, -1), start, isAtEnd)
  return again === undefined ? undefined : { start: again, lines: lines.slice(0, -1) }
}

function replaced(lines: readonly Line[], { start, lines: changes }: Located): Line[] {
  const result: Line[] = []
  let at = start
  for (const { kind, text } of changes) {
    const line = lines[at]
    if (kind === '+') result.push({ text, end: (line?.end || lines[at - 1]?.end) ?? '' })
    else at++
    if (kind === ' ' && line) result.push(line)
  }
  return result
}

const FORMS: readonly ((line: string) => string)[] = [(line) => line, (line) => line.trimEnd(), (line) => line.trim()]

/** Finds lines in lines: as one text, in which each line is between two line ends. */
class LineSearch {
  readonly #lines: readonly string[]
  readonly #slices = createSlices()
  readonly #forms = new Map<(line: string) => string, { readonly text: string; readonly starts: Uint32Array }>()

  constructor(lines: readonly string[]) {
    this.#lines = lines
  }

  get count(): number {
    return this.#lines.length
  }

  /** Returns the index of the first matching line at or after line `from`; with `isAtEnd` preferably the last match. */
  async find(wanted: readonly string[], from: number, isAtEnd = false): Promise<number | undefined> {
    const last = this.count - wanted.length
    for (const form of FORMS) {
      const pattern = wanted.map(form)
      if (isAtEnd && last >= from && pattern.every((line, at) => line === form(this.#lines[last + at] ?? '')))
        return last
      const found = await this.#findIn(form, pattern, from)
      if (found !== undefined) return found
    }
    return undefined
  }

  async #findIn(form: (line: string) => string, pattern: readonly string[], from: number): Promise<number | undefined> {
    if (from + pattern.length > this.count) return undefined
    const { text, starts } = this.#formed(form)
    const find = createPatientFinder(text, `\n${pattern.join('\n')}\n`, this.#slices)
    const at = await find(starts[from] ?? 0)
    await this.#slices.rest()
    return at < 0 ? undefined : indexOfStart(starts, at)
  }

  #formed(form: (line: string) => string) {
    let formed = this.#forms.get(form)
    if (!formed) {
      const lines = this.#lines.map(form)
      const starts = new Uint32Array(lines.length)
      for (let at = 1; at < lines.length; at++) starts[at] = (starts[at - 1] ?? 0) + (lines[at - 1]?.length ?? 0) + 1
      this.#forms.set(form, (formed = { text: `\n${lines.join('\n')}\n`, starts }))
    }
    return formed
  }
}

/** Returns the index of a number in an ascending list. */
function indexOfStart(starts: Uint32Array, wanted: number): number {
  let [low, high] = [0, starts.length - 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((starts[middle] ?? 0) < wanted) low = middle + 1
    else high = middle
  }
  return low
}

/** Longer hunks are quoted in part. */
const MAX_QUOTED_CHARS = 2000

function explain(path: string, number: number, { contexts, lines }: Hunk): string {
  const old = lines.filter(isOld).map(({ text }) => text)
  const wanted = [...contexts.map((context) => `@@ ${context}`), ...old]
  const quoted = wanted.join('\n').slice(0, MAX_QUOTED_CHARS).toWellFormed()
  return `Hunk ${number} of ${path} does not fit: these lines were not found after the hunk before it. Read the file and send the patch again.\n${quoted}`
}

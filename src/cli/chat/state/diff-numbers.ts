/**
 * The line numbers of a diff. A call has only the changed texts: where they are is known from its input, from the
 * numbered lines in its result, or from the file.
 */
import type { DiffLine } from './diff.ts'
import { diffOfCall } from './diff.ts'
import { fieldsOfInput } from '../../../contract/events/call-title.ts'

/** The first line of each part of a diff, in the file before the change. */
export type Starts = readonly (number | undefined)[]

type Hunk = { readonly path: string | undefined; readonly lines: readonly DiffLine[]; readonly start?: number }
type Side = 'before' | 'after'

const FILE_OF_PATCH = /^\*\*\* (Add|Update) File: (.*)$/
/** A line as `cat -n` shows it. */
const NUMBERED = /^ *(\d+)\t(.*)$/gm
/** Lines before the change in the result of an edit. */
const LINES_BEFORE = 4

/** Returns the files in which parts of the diff have to be searched for. */
export function filesToSearch(input: unknown, knownStarts: Starts = []): ReadonlySet<string> {
  const open = hunksOf(input).filter(({ start }, at) => start === undefined && knownStarts[at] === undefined)
  return new Set(open.flatMap(({ path }) => (path === undefined ? [] : [path])))
}

/** Finds the parts in the texts of the files, before or after the change. */
export function startsIn(input: unknown, textOf: (path: string) => string | undefined, side: Side): Starts {
  const foundStarts = new Map<string, number>()
  return hunksOf(input).map(({ path = '', lines, start }) => {
    if (start !== undefined) return start
    const [from, movedBy] = [foundStarts.get(path) ?? 0, foundStarts.get(`${path}\0`) ?? 0]
    const at = placeOf(textOn(side, lines), textOf(path), from)
    if (at === undefined) return undefined
    foundStarts.set(path, at.end).set(`${path}\0`, movedBy + growthOf(lines))
    return side === 'before' ? at.line : at.line - movedBy
  })
}

/** The same from the result of the call. */
export function startsInResult(input: unknown, result: string): Starts {
  const numberedLines = [...result.matchAll(NUMBERED)]
  const first = Number(numberedLines[0]?.[1])
  const texts = numberedLines.map(([, , text = '']) => text)
  const before = first > 1 ? LINES_BEFORE : 0
  const text = texts.slice(before).join('\n')
  const [hunk, ...others] = hunksOf(input)
  if (!hunk || others.length > 0) return []
  if (hunk.start !== undefined) return [hunk.start]
  const at = placeOf(textOn('after', hunk.lines), text, 0)
  return at ? [at.line - 1 + first + before] : []
}

/** Returns the lines with their numbers: removed ones as before the change, others as after it. */
export function numberedLines(input: unknown, starts: Starts = []): readonly DiffLine[] {
  let growth = { path: undefined as string | undefined, lines: 0 }
  const numberedHunks = hunksOf(input).map(({ path, lines, start }, at) => {
    if (growth.path !== path) growth = { path, lines: 0 }
    const first = start ?? starts[at]
    let [old, now] = [first ?? 0, (first ?? 0) + growth.lines]
    growth.lines += growthOf(lines)
    return lines.map(({ sign, text }): DiffLine => {
      const line = sign === '-' ? old : now
      if (sign !== '+') old++
      if (sign !== '-') now++
      return first === undefined ? { sign, text } : { sign, text, line }
    })
  })
  let next = 0
  const all = diffOfCall(input)?.lines ?? []
  return all.flatMap((line, at) => {
    if (line.sign === '@') return [line]
    return all[at - 1] === undefined || all[at - 1]?.sign === '@' ? (numberedHunks[next++] ?? []) : []
  })
}

/** The parts between the headings of the diff. */
function hunksOf(input: unknown): Hunk[] {
  const { file_path, path: other, content, file_text, insert_line, command } = fieldsOfInput(input)
  let path = [file_path, other].find((each) => typeof each === 'string')
  const isWhole = typeof content === 'string' || typeof file_text === 'string'
  const insertedAt = command === 'insert' && typeof insert_line === 'number' ? insert_line + 1 : undefined
  let start = isWhole ? 1 : insertedAt
  const hunks: (Hunk & { readonly lines: DiffLine[] })[] = []
  let isOpen = false
  for (const line of diffOfCall(input)?.lines ?? []) {
    const [, kind, name] = line.sign === '@' ? (FILE_OF_PATCH.exec(line.text) ?? []) : []
    if (name !== undefined) [path, start] = [name, kind === 'Add' ? 1 : undefined]
    if (line.sign !== '@' && !isOpen) hunks.push({ path, lines: [], ...(start !== undefined && { start }) })
    isOpen = line.sign !== '@'
    if (isOpen) hunks.at(-1)?.lines.push(line)
  }
  return hunks
}

const textOn = (side: Side, lines: readonly DiffLine[]): string =>
  lines.flatMap(({ sign, text }) => (sign === (side === 'before' ? '+' : '-') ? [] : [text])).join('\n')

const growthOf = (lines: readonly DiffLine[]): number =>
  lines.reduce((sum, { sign }) => sum + (sign === '+' ? 1 : sign === '-' ? -1 : 0), 0)

function placeOf(part: string, text: string | undefined, from: number): { line: number; end: number } | undefined {
  const at = part === '' || text === undefined ? -1 : text.indexOf(part, text.includes(part, from) ? from : 0)
  if (at < 0 || text === undefined) return undefined
  return { line: text.slice(0, at).split('\n').length, end: at + part.length }
}

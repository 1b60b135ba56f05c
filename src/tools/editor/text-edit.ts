/**
 * Edits a text for the model. A model writes line ends as `\n`, whatever the file has: so the text is searched with
 * every `\r\n` treated as `\n`, and inserted text gets the line ends of its surroundings. All other characters of the text
 * are unchanged.
 *
 * The agent chooses text and edit, up to megabytes of each: every function runs in linear time.
 */
import { createPatientFinder } from '../../lib/text/find-text.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { withPlainLineEnds, withReturns } from './line-ends.ts'

/** Replaces a range of the text; offsets refer to the original text. */
export type Edit = { readonly start: number; readonly end: number; readonly replacement: string }

/** Maximum number of matches searched: enough to report that there are too many. */
const MAX_MATCHES = 50

export function applyEdit(text: string, { start, end, replacement }: Edit): string {
  return text.slice(0, start) + replacement + text.slice(end)
}

/**
 * The positions of `wanted`, including overlapping ones: choosing one of them would be a guess. Offsets refer to
 * `searched`.
 */
export type Matches = { readonly searched: string; readonly starts: readonly number[] }

export async function findMatches(text: string, wantedText: string): Promise<Matches> {
  // A `\r` that the model has written is intended: then line ends are not normalised.
  const searchedText = wantedText.includes('\r') ? text : withPlainLineEnds(text)
  const starts: number[] = []
  const find = createPatientFinder(searchedText, wantedText, createSlices())
  for (let at = await find(0); at !== -1; at = await find(at + 1)) {
    starts.push(at)
    if (starts.length === MAX_MATCHES) break
  }
  return { searched: searchedText, starts }
}

/** Returns the replacement at one match; common beginnings and ends of old and new are left untouched. */
export function replacementAt(text: string, start: number, oldText: string, newText: string): Edit {
  const { start: from, end: to, replacement } = difference(oldText, newText)
  if (oldText.includes('\r')) return { start: start + from, end: start + to, replacement }
  const first = originalOffset(text, start + from)
  return { start: first, end: originalOffset(text, start + to), replacement: withLineEndsAt(text, first, replacement) }
}

/** Returns the smallest single edit that turns the old text into the new one. */
export function difference(oldText: string, newText: string): Edit {
  const head = commonHead(oldText, newText)
  const tail = commonTail(oldText.slice(head), newText.slice(head))
  return { start: head, end: oldText.length - tail, replacement: newText.slice(head, newText.length - tail) }
}

/**
 * Inserts whole lines after line `line`, 0 for the very beginning. A last line without a line end stays without one.
 */
export function insertionAfter(text: string, line: number, newText: string): Edit {
  const at = lineStart(text, line)
  const eol = lineEndAt(text, Math.max(0, at - 1))
  const lines = withLineEndsAt(text, Math.max(0, at - 1), withoutLastEnd(newText))
  const isAfterOpenEnd = at === text.length && text !== '' && !text.endsWith('\n')
  return { start: at, end: at, replacement: isAfterOpenEnd ? eol + lines : lines + eol }
}

/** Lines end with `\n`; text after the last one counts as a line. */
export function countLines(text: string): number {
  const count = newlinesBefore(text, text.length)
  return text === '' || text.endsWith('\n') ? count : count + 1
}

/** Returns the number, from 1, of the line with the offset. */
export function lineAt(text: string, offset: number): number {
  return 1 + newlinesBefore(text, offset)
}

/** Returns the numbers of the lines with the offsets, without duplicates. They ascend, so the text is scanned once. */
export function linesAt(text: string, offsets: readonly number[]): number[] {
  const lines = new Set<number>()
  let line = 1
  let from = 0
  for (const offset of offsets) {
    line += newlinesBefore(text, offset, from)
    from = offset
    lines.add(line)
  }
  return [...lines]
}

/** Characters scanned one by one before `indexOf` is called. */
const STRETCH = 64

/**
 * `indexOf` alone would take a third of a second for ten million empty lines, and scanning each character takes ten
 * times as long as `indexOf` for one line of that length: so it is called only for a stretch without a line end.
 */
function newlinesBefore(text: string, end: number, from = 0): number {
  const last = Math.min(end, text.length)
  let count = 0
  for (let at = from; at < last;) {
    const before = count
    const stop = Math.min(at + STRETCH, last)
    for (; at < stop; at++) if (text.charCodeAt(at) === NEWLINE) count++
    if (count > before) continue
    const next = text.indexOf('\n', at)
    if (next < 0) break
    at = next
  }
  return count
}

const [NEWLINE, RETURN] = [0x0a, 0x0d]

/** Returns the offset right after `line` lines; the end of the text if it has fewer. */
export function lineStart(text: string, line: number): number {
  let at = 0
  for (let remainingLines = line; remainingLines > 0 && at < text.length;) {
    const before = remainingLines
    const stop = Math.min(at + STRETCH, text.length)
    for (; at < stop && remainingLines > 0; at++) if (text.charCodeAt(at) === NEWLINE) remainingLines--
    if (remainingLines < before) continue
    const next = text.indexOf('\n', at)
    if (next < 0) return text.length
    at = next
  }
  return at
}

function withoutLastEnd(text: string): string {
  if (!text.endsWith('\n')) return text
  return text.slice(0, text.endsWith('\r\n') ? -2 : -1)
}

/** Converts an offset in the text with plain line ends to one in the original text. */
function originalOffset(text: string, offset: number): number {
  let droppedCount = 0
  for (let at = 0; at - droppedCount < offset && at < text.length; at++) {
    if (text.charCodeAt(at) === RETURN && text.charCodeAt(at + 1) === NEWLINE) droppedCount++
  }
  return offset + droppedCount
}

function withLineEndsAt(text: string, offset: number, addedText: string): string {
  return addedText.includes('\r') || lineEndAt(text, offset) === '\n' ? addedText : withReturns(addedText)
}

/** Returns the line end of the line with the offset, or, if it has none, of the line before. */
function lineEndAt(text: string, offset: number): '\n' | '\r\n' {
  const next = text.indexOf('\n', offset)
  const end = next === -1 ? text.lastIndexOf('\n', offset) : next
  return end > 0 && text[end - 1] === '\r' ? '\r\n' : '\n'
}

/** Compares a piece at a time: the engine is faster at that than any loop. */
const PIECE = 4096

function commonHead(a: string, b: string): number {
  const most = Math.min(a.length, b.length)
  let length = 0
  while (length + PIECE <= most && a.slice(length, length + PIECE) === b.slice(length, length + PIECE)) length += PIECE
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

function commonTail(a: string, b: string): number {
  const most = Math.min(a.length, b.length)
  const pieceOf = (text: string, length: number) => text.slice(text.length - length - PIECE, text.length - length)
  let length = 0
  while (length + PIECE <= most && pieceOf(a, length) === pieceOf(b, length)) length += PIECE
  while (length < most && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length)) length++
  return length
}

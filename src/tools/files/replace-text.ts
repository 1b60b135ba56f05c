/** Replaces a text in a text for the model: a unique occurrence, or all. */
import { createPatientFinder } from '../../lib/text/find-text.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { MAX_FILE_BYTES } from '../editor/editor-content.ts'
import { EditorError, mebibytes } from '../editor/editor-faults.ts'
import type { SearchedFile } from '../editor/edit-hints.ts'
import { explainNoMatch } from '../editor/edit-hints.ts'
import { withPlainLineEnds, withReturns } from '../editor/line-ends.ts'
import type { Edit } from '../editor/text-edit.ts'
import { findMatches, linesAt, replacementAt } from '../editor/text-edit.ts'

/** Throws an `EditorError` if the old text is missing or occurs more than once. */
export async function replaceOnce(
  text: string,
  [oldText, newText]: readonly [string, string],
  searchedFile: SearchedFile,
  advice = '',
): Promise<Edit> {
  const { searched, starts } = await findMatches(text, oldText)
  const [start] = starts
  if (start === undefined) throw new EditorError(await explainNoMatch(searchedFile, text, oldText))
  if (starts.length > 1) {
    const lines = linesAt(searched, starts).join(', ')
    const { path, parameter } = searchedFile
    throw new EditorError(
      `No replacement was performed. Multiple occurrences of ${parameter} in lines [${lines}] of ${path}. Please ensure it is unique: include more of the lines around it${advice}.`,
    )
  }
  return replacementAt(text, start, oldText, newText)
}

export type ReplacedContent = { readonly text: string; readonly count: number }

/**
 * Replaces all non-overlapping occurrences, from the beginning. Line ends are as in `replaceOnce`: each replacement
 * gets those of the line where it begins. Runs in linear time.
 */
export async function replaceEvery(
  text: string,
  [oldText, newText]: readonly [string, string],
  searchedFile: SearchedFile,
): Promise<ReplacedContent> {
  const isPlain = oldText.includes('\r') || !text.includes('\r\n')
  const searchedText = isPlain ? text : withPlainLineEnds(text)
  const starts = await findEvery(searchedText, oldText)
  if (starts.length === 0) throw new EditorError(await explainNoMatch(searchedFile, text, oldText))
  if (starts.length > MAX_REPLACED)
    throw new EditorError(
      `No replacement was performed: ${searchedFile.parameter} occurs more than ${MAX_REPLACED} times in ${searchedFile.path}. Use Bash for that, with sed for example.`,
    )
  if (text.length + starts.length * (newText.length - oldText.length) > MAX_FILE_BYTES)
    throw new EditorError(
      `${searchedFile.path} would be larger than the ${mebibytes(MAX_FILE_BYTES)} that can be edited; nothing was changed.`,
    )
  const places = isPlain ? starts.map((start) => [start, start + oldText.length] as const) : undefined
  const originals = places ?? originalPlaces(text, starts, oldText.length)
  const withEnds = isPlain || newText.includes('\r') ? () => newText : endsLike(text, newText)
  const pieces: string[] = []
  let from = 0
  for (const [start, end] of originals) {
    pieces.push(text.slice(from, start), withEnds(start))
    from = end
  }
  return { text: pieces.join('') + text.slice(from), count: starts.length }
}

/** Each takes memory and time. A program such as `sed` changes more of them faster. */
const MAX_REPLACED = 100_000

async function findEvery(searchedText: string, wantedText: string): Promise<number[]> {
  const slices = createSlices()
  const find = createPatientFinder(searchedText, wantedText, slices)
  const starts: number[] = []
  for (let at = await find(0); at !== -1; at = await find(at + wantedText.length)) {
    if (starts.push(at) > MAX_REPLACED) return starts
    await slices.rest()
  }
  return starts
}

/** Converts ascending offsets in the text with plain line ends to offsets in the original text, in one pass. */
function originalPlaces(text: string, starts: readonly number[], length: number): (readonly [number, number])[] {
  let at = 0
  let plain = 0
  const advanceTo = (offset: number) => {
    for (; plain < offset; plain++) at += text[at] === '\r' && text[at + 1] === '\n' ? 2 : 1
    return at
  }
  return starts.map((start) => [advanceTo(start), advanceTo(start + length)] as const)
}

/** Returns the new text with the line ends of the line at an offset; the offsets must ascend. */
function endsLike(text: string, newText: string): (offset: number) => string {
  const withReturn = withReturns(newText)
  let end = text.indexOf('\n')
  let isReturn = text[end - 1] === '\r'
  return (offset) => {
    while (end !== -1 && end < offset) {
      isReturn = text[end - 1] === '\r'
      end = text.indexOf('\n', end + 1)
    }
    return (end === -1 ? isReturn : text[end - 1] === '\r') ? withReturn : newText
  }
}

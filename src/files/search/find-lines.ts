/**
 * Finds the lines of a file that contain a text, in bounded memory and linear time however long the file or its lines
 * are.
 */
import { createByteSearch } from '../../lib/text/find-text.ts'

export type FoundLine = {
  /** The number of the line, from 1. */
  readonly line: number
  /** Undefined for a line longer than `MAX_LINE_BYTES`. */
  readonly bytes: Buffer | undefined
}

const MAX_LINE_BYTES = 256 * 1024

/** A NUL in the first bytes makes a file binary, as in git. */
const BINARY_CHECK_BYTES = 8000

const NEWLINE = 0x0a

export type Needle = {
  readonly bytes: Buffer
  readonly ignoreCase: boolean
  /** Finds it in bytes of the same case. */
  readonly indexIn: (bytes: Buffer, from: number) => number
}

/** `ignoreCase` applies to ASCII letters: for others it would depend on the language. */
export function needleOf(text: string, ignoreCase: boolean): Needle {
  const textBytes = Buffer.from(text)
  const bytes = ignoreCase ? lowerCase(textBytes) : textBytes
  return { bytes, ignoreCase, indexIn: createByteSearch(bytes) }
}

/** Yields each line once. Nothing for a binary file. */
export async function* findLines(pieces: AsyncIterable<Buffer>, needle: Needle): AsyncGenerator<FoundLine> {
  let line = 1
  let rest: Buffer = Buffer.alloc(0)
  // Whether `rest` is only the end of its line, and whether the line has been yielded already.
  let isCut = false
  let isYielded = false
  let isFirst = true
  for await (const piece of pieces) {
    if (isFirst && piece.subarray(0, BINARY_CHECK_BYTES).includes(0)) return
    isFirst = false
    const block = rest.length ? Buffer.concat([rest, piece]) : piece
    const end = block.lastIndexOf(NEWLINE) + 1
    if (end > 0) {
      for (const foundLine of linesIn(block.subarray(0, end), needle, line)) {
        const isFirstLine = foundLine.line === line
        if (!isFirstLine) yield foundLine
        else if (!isYielded) yield isCut ? { ...foundLine, bytes: undefined } : foundLine
      }
      line += countNewlines(block.subarray(0, end))
      isCut = isYielded = false
    }
    rest = block.subarray(end)
    if (rest.length <= MAX_LINE_BYTES) continue
    if (!isYielded && positionIn(rest, needle, 0) >= 0) {
      yield { line, bytes: undefined }
      isYielded = true
    }
    // Keep enough to find a text that begins here and continues in the next piece.
    rest = rest.subarray(rest.length - needle.bytes.length + 1)
    isCut = true
  }
  const [last] = isYielded ? [] : linesIn(rest, needle, line)
  if (last) yield isCut ? { ...last, bytes: undefined } : last
}

function* linesIn(block: Buffer, needle: Needle, firstLine: number): Generator<FoundLine> {
  const searchedBytes = needle.ignoreCase ? lowerCase(block) : block
  let line = firstLine
  let countedLines = 0
  for (let from = 0; ;) {
    const at = needle.indexIn(searchedBytes, from)
    if (at < 0) return
    const start = at === 0 ? 0 : block.lastIndexOf(NEWLINE, at - 1) + 1
    const newline = block.indexOf(NEWLINE, at)
    const end = newline < 0 ? block.length : newline
    line += countNewlines(block.subarray(countedLines, start))
    countedLines = start
    yield { line, bytes: end - start > MAX_LINE_BYTES ? undefined : block.subarray(start, end) }
    from = end
  }
}

const positionIn = (block: Buffer, { indexIn, ignoreCase }: Needle, from: number) =>
  indexIn(ignoreCase ? lowerCase(block) : block, from)

function countNewlines(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEWLINE) count++
  return count
}

function lowerCase(bytes: Buffer): Buffer {
  const lower = Buffer.from(bytes)
  for (let at = 0; at < lower.length; at++) {
    const byte = lower[at] ?? 0
    if (byte >= 0x41 && byte <= 0x5a) lower[at] = byte | 0x20
  }
  return lower
}

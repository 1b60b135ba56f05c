/**
 * Reads a log's lines in blocks: a run of whole lines from one read of the file, forwards or backwards.
 * What is held in memory is one block, however long the log is.
 */
import { LF } from './event-line.ts'

/** Reads bytes of the file; see LogFile. */
export type Source = { read(position: number, length: number): Promise<Buffer> }

/** The first read is small, for most readers want a page; those who read on get larger and fewer ones. */
const FIRST_BLOCK_BYTES = 64 * 1024
const MAX_BLOCK_BYTES = 1024 * 1024

/** Line `i` is `bytes[starts[i] … ends[i]]` without its LF; `offset` is where the block stands in the file. */
export type Block = { bytes: Buffer; offset: number; starts: readonly number[]; ends: readonly number[] }

/** Blocks from `from`, which is where a line begins, up to `to`, which is where one has ended. */
export async function* blocksForward(source: Source, from: number, to: number): AsyncGenerator<Block> {
  let size = FIRST_BLOCK_BYTES
  while (from < to) {
    const bytes = await source.read(from, Math.min(size, to - from))
    const end = bytes.lastIndexOf(LF) + 1
    if (end > 0) {
      yield block(bytes.subarray(0, end), from)
      from += end
      size = Math.min(size * 2, MAX_BLOCK_BYTES)
    } else if (bytes.length === to - from) {
      return
    } else {
      // One line larger than the block: take more until it fits. All that is read twice is once its size.
      size *= 2
    }
  }
}

/** Blocks from the one that ends at `to`, where a line has ended, back to `from`, where one begins. */
export async function* blocksBackward(source: Source, from: number, to: number): AsyncGenerator<Block> {
  let size = FIRST_BLOCK_BYTES
  while (to > from) {
    const position = Math.max(from, to - size)
    const bytes = await source.read(position, to - position)
    // Starting anywhere but at `from`, the first line may be the end of one: it belongs to the next block.
    const start = position === from ? 0 : bytes.indexOf(LF) + 1
    if (start < bytes.length && (start > 0 || position === from)) {
      yield block(bytes.subarray(start), position + start)
      to = position + start
      size = Math.min(size * 2, MAX_BLOCK_BYTES)
    } else {
      size *= 2
    }
  }
}

function block(bytes: Buffer, offset: number): Block {
  const starts: number[] = []
  const ends: number[] = []
  let start = 0
  for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
    starts.push(start)
    ends.push(end)
    start = end + 1
  }
  return { bytes, offset, starts, ends }
}

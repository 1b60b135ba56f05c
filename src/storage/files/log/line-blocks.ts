/**
 * Reads a log's lines in blocks: complete lines from one read of the file, forwards or backwards. Only one block is in
 * memory, however long the log is.
 */
import { LF } from './event-line.ts'

/** Reads bytes of the file, into `memory` if it has room; see LogFile. */
export type Source = { read(position: number, length: number, memory?: Buffer): Promise<Buffer> }

/** The first read is small, because most readers want one page; readers that continue get larger and fewer blocks. */
const FIRST_BLOCK_BYTES = 64 * 1024
const MAX_BLOCK_BYTES = 1024 * 1024

/**
 * A scan uses this memory for all of its large blocks, and leaves it to the next scan. New memory for each block would take
 * longer than reading the file, because the kernel clears it. A scan that begins during another one takes new memory.
 */
let spare: Buffer | undefined

class BlockMemory implements Disposable {
  #memory: Buffer | undefined

  for(size: number): Buffer | undefined {
    if (size !== MAX_BLOCK_BYTES || this.#memory) return this.#memory
    this.#memory = spare ?? Buffer.allocUnsafeSlow(MAX_BLOCK_BYTES)
    spare = undefined
    return this.#memory
  }

  [Symbol.dispose](): void {
    spare ??= this.#memory
  }
}

/**
 * Line `i` is `bytes[starts[i] … ends[i]]` without its LF; `offset` is the block's position in the file. Valid until the
 * next block is asked for.
 */
export type Block = { bytes: Buffer; offset: number; starts: readonly number[]; ends: readonly number[] }

/** Yields blocks from `from`, where a line begins, to `to`, where one ends. */
export async function* blocksForward(source: Source, from: number, to: number): AsyncGenerator<Block> {
  using memory = new BlockMemory()
  let size = FIRST_BLOCK_BYTES
  while (from < to) {
    const bytes = await source.read(from, Math.min(size, to - from), memory.for(size))
    const end = bytes.lastIndexOf(LF) + 1
    if (end > 0) {
      yield block(bytes.subarray(0, end), from)
      from += end
      size = Math.min(size * 2, MAX_BLOCK_BYTES)
    } else if (bytes.length === to - from) {
      return
    } else {
      // One line is larger than the block: read more until it fits. At most its size is read twice.
      size *= 2
    }
  }
}

/** Yields blocks backwards from `to`, where a line ends, to `from`, where one begins. */
export async function* blocksBackward(source: Source, from: number, to: number): AsyncGenerator<Block> {
  using memory = new BlockMemory()
  let size = FIRST_BLOCK_BYTES
  while (to > from) {
    const position = Math.max(from, to - size)
    const bytes = await source.read(position, to - position, memory.for(size))
    // Anywhere except at `from`, the first line may be incomplete: it belongs to the next block.
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

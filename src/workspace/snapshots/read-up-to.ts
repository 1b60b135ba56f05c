/** Reads a file that may change meanwhile. */
import fs, { constants } from 'node:fs'
import type { Stats } from 'node:fs'
import { promisify } from 'node:util'

// Bare descriptors: a FileHandle costs half as much again, and a first look reads all files.
const openDescriptor = promisify(fs.open)
const statDescriptor = promisify(fs.fstat)
const readSome = promisify(fs.read)

/** Through no link, and without a wait for a fifo that has replaced the file. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export type ReadContent = {
  /** From before it was read. */
  readonly stats: Stats
  /** As much as the limit allows. */
  readonly content: Buffer
}

type Reading = {
  /** Bytes. */
  readonly limit: number
  /** Where the content goes if it fits; the caller uses it for nothing else. */
  readonly scratch?: Buffer | undefined
  /** Gets what the file is before it is read. */
  readonly mayRead?: (stats: Stats) => boolean
}

/** Undefined if it is no regular file, or may not be read. */
export async function readUpTo(
  path: string | Buffer,
  { limit, scratch, mayRead = () => true }: Reading,
): Promise<ReadContent | undefined> {
  const fd = await openDescriptor(path, FILE)
  try {
    const stats = await statDescriptor(fd)
    if (!stats.isFile() || !mayRead(stats)) return undefined
    // One more byte than expected, so that the end is known from one read.
    const length = Math.min(limit, stats.size + 1)
    const start = scratch && length <= scratch.length ? scratch.subarray(0, length) : Buffer.allocUnsafe(length)
    return { stats, content: await readAll(fd, start, limit) }
  } finally {
    // From memory, which costs less than to hand it to the thread pool.
    fs.closeSync(fd)
  }
}

/** `start`: for what is expected, and one byte more. */
async function readAll(fd: number, start: Buffer, limit: number): Promise<Buffer> {
  let content = start
  let length = 0
  for (;;) {
    const { bytesRead } = await readSome(fd, content, length, content.length - length, length)
    length += bytesRead
    // A regular file that gives what was expected, and not one byte more, has ended there.
    const isWhole = bytesRead === 0 || length === limit || length === start.length - 1
    if (isWhole) return content.subarray(0, length)
    if (length < content.length) continue
    const larger = Buffer.allocUnsafe(Math.min(limit, content.length * 2))
    content.copy(larger)
    content = larger
  }
}

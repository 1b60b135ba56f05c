/** Reads a file that may change meanwhile. */
import fs, { constants } from 'node:fs'
import type { Stats } from 'node:fs'
import { promisify } from 'node:util'

// Bare descriptors: a FileHandle costs half as much again, and a first look reads all files.
const openDescriptor = promisify(fs.open)
const statDescriptor = promisify(fs.fstat)
const readSome = promisify(fs.read)

/** The flags follow no link, and do not wait for a fifo that has replaced the file. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export type ReadContent = {
  /** The stats from before it was read. */
  readonly stats: Stats
  /** The content as far as the limit allows. */
  readonly content: Buffer
}

type Reading = {
  /** Bytes. */
  readonly limit: number
  /** The buffer that the content goes to if it fits; the caller uses it for nothing else. */
  readonly scratch?: Buffer | undefined
  /** True if it is probably in memory: what fits in `scratch` is read without a thread, which costs more than to read it. */
  readonly isQuick?: boolean
  /** Gets what the file is before it is read. */
  readonly mayRead?: (stats: Stats) => boolean
}

/** Undefined if it is not a regular file, or may not be read. */
export async function readUpTo(
  path: string | Buffer,
  { limit, scratch, isQuick = false, mayRead = () => true }: Reading,
): Promise<ReadContent | undefined> {
  const fd = isQuick ? fs.openSync(path, FILE) : await openDescriptor(path, FILE)
  try {
    const stats = isQuick ? fs.fstatSync(fd) : await statDescriptor(fd)
    if (!stats.isFile() || !mayRead(stats)) return undefined
    // One more byte than expected, so that the end is known from one read.
    const length = Math.min(limit, stats.size + 1)
    const fits = scratch && length <= scratch.length
    const start = fits ? scratch.subarray(0, length) : Buffer.allocUnsafe(length)
    return { stats, content: await readAll({ fd, start, limit, isQuick: isQuick && fits === true }) }
  } finally {
    // This is from memory, which costs less than to hand it to the thread pool.
    fs.closeSync(fd)
  }
}

type Open = { readonly fd: number; readonly start: Buffer; readonly limit: number; readonly isQuick: boolean }

/** `start`: for what is expected, and one byte more. */
async function readAll({ fd, start, limit, isQuick }: Open): Promise<Buffer> {
  let content = start
  let length = 0
  for (;;) {
    const room = content.length - length
    const bytesRead = isQuick
      ? fs.readSync(fd, content, length, room, length)
      : (await readSome(fd, content, length, room, length)).bytesRead
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

/** Reads a file that may change meanwhile. */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'

/** How it is opened: through no link, and without a wait for a fifo that has replaced it. */
export const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** `size`: what is expected. */
export async function readUpTo(file: FileHandle, limit: number, size: number): Promise<Buffer> {
  // One more byte than expected, so that the end is known from one read.
  let content = Buffer.allocUnsafe(Math.min(limit, size + 1))
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(content, length, content.length - length, length)
    length += bytesRead
    if (bytesRead === 0 || length === limit) return content.subarray(0, length)
    if (length < content.length) continue
    const larger = Buffer.allocUnsafe(Math.min(limit, content.length * 2))
    content.copy(larger)
    content = larger
  }
}

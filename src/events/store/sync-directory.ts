/** Makes names durable: a file that was created or renamed may be nameless after a crash until its directory is synced. */
import fs from 'node:fs'
import { promisify } from 'node:util'

// On bare descriptors: a FileHandle costs half as much again, and a create waits for several.
const open = promisify(fs.open)
const fsync = promisify(fs.fsync)
const close = promisify(fs.close)

export async function syncDirectory(path: string): Promise<void> {
  const descriptor = await open(path, 'r')
  try {
    await fsync(descriptor)
  } finally {
    await close(descriptor)
  }
}

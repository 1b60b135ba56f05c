/** Replaces files atomically, and makes names durable. By paths: not for directories in which others can put a link in the way. */
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

type Replacing = {
  /** False for what can be made again: after a power cut, the file may be the old one, the new one or empty. */
  readonly durable?: boolean
  /** A fixed name for the unfinished file where only one writes: the next write then replaces what a crash has left. */
  readonly draft?: string
}

/**
 * Readers find the old file or the new one, never a part. Durable when it resolves; readable by its owner only. When it
 * throws, the old file stays and nothing is left beside it.
 */
export async function replaceFile(
  path: string,
  content: Buffer | string | AsyncIterable<Buffer | string>,
  { durable = true, draft }: Replacing = {},
): Promise<void> {
  const temporary = draft ?? `${path}.${randomBytes(6).toString('hex')}`
  try {
    await using file = await open(temporary, draft === undefined ? 'wx' : 'w', 0o600)
    await file.writeFile(content)
    if (durable) await file.datasync()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  if (durable) await syncDirectory(dirname(path))
}

// On bare descriptors: a FileHandle costs half as much again, and a create waits for several.
const openDescriptor = promisify(fs.open)
const fsync = promisify(fs.fsync)
const close = promisify(fs.close)

/** A file that was created or renamed may be nameless after a crash until its directory is synced. */
export async function syncDirectory(path: fs.PathLike): Promise<void> {
  const descriptor = await openDescriptor(path, 'r')
  try {
    await fsync(descriptor)
  } finally {
    await close(descriptor)
  }
}

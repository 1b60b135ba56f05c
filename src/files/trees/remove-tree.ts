/**
 * Removes a directory with everything in it, even while it is in use: removes each name relative to its open directory
 * and never follows links, so no link leads the removal elsewhere. A directory of millions of names needs no more
 * memory than a small one.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import type { Dir } from 'node:fs'
import { chmod, opendir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Queue } from '../../lib/queue.ts'
import { codeOf, ignoring } from '../../lib/error-code.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import { openAt, openDirectory, within } from '../jail/opened-path.ts'

/** Names of one directory that are removed concurrently: the logs share the threads. */
const CONCURRENCY = 4

/** Levels held open. Deeper directories are moved up, to the top of the tree. */
const MAX_DEPTH = 32

/** How often a directory is read again if new entries appeared. */
const MAX_PASSES = 10_000

const READ_AHEAD = 256

/** Does nothing if the path does not exist. */
export async function removeTree(path: string): Promise<void> {
  // Other systems have no paths for open directories.
  if (process.platform !== 'linux') return await rm(path, { recursive: true, force: true })
  const parent = await openDirectory(dirname(path)).catch(unlessGone)
  if (!parent) return
  await using place = parent
  await removeName(place, Buffer.from(basename(path)), undefined, 0)
}

/** `top` is the directory that deep ones are moved to, undefined for the tree itself. */
async function removeName(parent: OpenedPath, name: Buffer, top: OpenedPath | undefined, depth: number): Promise<void> {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const isDirectory = await unlinkUnlessDirectory(parent, name)
    if (!isDirectory) return
    const removedCount = await emptyAt(parent, name, top, depth)
    if (await rmdirUnlessFull(parent, name)) return
    if (removedCount === 0) break
  }
  await rmdir(entryIn(parent, name)) // reports why it cannot be removed
}

/** Returns true if it is a directory. The system reports the kind of entry at the removal itself. */
async function unlinkUnlessDirectory(parent: OpenedPath, name: Buffer): Promise<boolean> {
  try {
    await unlink(entryIn(parent, name))
    return false
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return false
    if (code === 'EISDIR') return true
    throw error
  }
}

/** Returns true if it is gone, or not a directory any more. */
async function rmdirUnlessFull(parent: OpenedPath, name: Buffer): Promise<boolean> {
  try {
    await rmdir(entryIn(parent, name))
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return true
    if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') return false
    throw error
  }
}

/** Returns the number of names found in it. */
async function emptyAt(parent: OpenedPath, name: Buffer, top: OpenedPath | undefined, depth: number): Promise<number> {
  const openedDirectory = await openAt(entryIn(parent, name), constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    unlessGone,
  )
  // If it was replaced meanwhile, that counts as one.
  if (!openedDirectory) return 1
  await using directory = openedDirectory
  await makeWritable(directory)
  if (top && depth > MAX_DEPTH) {
    await rename(entryIn(parent, name), entryIn(top, Buffer.from(`deep-${randomUUID()}`)))
    return 1
  }
  return await emptyDirectory(directory, top ?? directory, depth)
}

/** The owner may have removed the write permission, as the module cache of Go does. */
async function makeWritable(directory: OpenedPath): Promise<void> {
  const { mode } = await directory.handle.stat()
  if ((mode & 0o700) !== 0o700) await chmod(`/proc/self/fd/${directory.handle.fd}`, (mode & 0o7777) | 0o700)
}

async function emptyDirectory(directory: OpenedPath, top: OpenedPath, depth: number): Promise<number> {
  const listing = await opendir(`/proc/self/fd/${directory.handle.fd}`, {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types know of text only
    encoding: 'buffer' as never,
    bufferSize: READ_AHEAD,
  })
  let foundCount = 0
  // One directory at a time: concurrently, each level would multiply the open descriptors.
  const directories = new Queue({ limit: 1 })
  const remove = async () => {
    for (let entry = await read(listing); entry; entry = await read(listing)) {
      foundCount++
      const { name } = entry
      if (await unlinkUnlessDirectory(directory, name))
        await directories.run(() => removeName(directory, name, top, depth + 1))
    }
  }
  try {
    const ends = await Promise.allSettled(Array.from({ length: CONCURRENCY }, remove))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  } finally {
    await listing.close()
  }
  return foundCount
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types know of text only
const read = async (listing: Dir) => (await listing.read()) as unknown as { readonly name: Buffer } | null

/** Returns the path as bytes, because a name need not be UTF-8. */
const entryIn = (place: OpenedPath, name: Buffer): Buffer => Buffer.concat([Buffer.from(within(place, '')), name])

/** Ignores entries that were removed or replaced by something that is not a directory. */
const unlessGone = ignoring('ENOENT', 'ENOTDIR', 'ELOOP')

/**
 * Replaces files atomically, and makes their names durable. Works by paths: not for directories in which others can
 * create links.
 */
import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

type Replacing = {
  /** False for data that can be recreated: after a power failure, the file may be the old one, the new one or empty. */
  readonly durable?: boolean
  /**
   * A fixed name for the temporary file if there is only one writer: the next write then replaces the remains of a
   * crash. It ends as `isDraftName` says, unless its directory is removed after a crash.
   */
  readonly draft?: string
}

/**
 * Readers find the old file or the new one, never a part. Durable when it resolves; readable by its owner only. If it
 * throws, the old file is unchanged and no temporary file is left.
 */
export async function replaceFile(
  path: string,
  content: Buffer | string | AsyncIterable<Buffer | string>,
  { durable = true, draft }: Replacing = {},
): Promise<void> {
  const temporary = draft ?? `${path}.${randomUUID()}.new`
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

/** Returns true for the name of a temporary file, of this version or an earlier one: a crash may have left it. */
export const isDraftName = (name: string): boolean => /\.(?:new|draft|[0-9a-f]{12})$/.test(name)

// Use bare descriptors: a FileHandle costs half as much again, and creating a conversation waits for several.
const openDescriptor = promisify(fs.open)
const fsync = promisify(fs.fsync)
const writeSome = promisify(fs.write)

/** Syncs a directory: after a crash, a created or renamed file may otherwise have no name. */
export async function syncDirectory(path: fs.PathLike): Promise<void> {
  const descriptor = await openDescriptor(path, 'r')
  try {
    await fsync(descriptor)
  } finally {
    // A directory is closed from memory, which costs less than to hand it to the thread pool.
    fs.closeSync(descriptor)
  }
}

/**
 * A new file, each write to which is durable; its name is when its directory was synced. Close it after the last write has
 * begun.
 */
export class SyncedFile {
  readonly #descriptor: number
  #writing: Promise<void> = Promise.resolve()
  #isClosed = false

  private constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  /** Throws EEXIST if the file exists. */
  static async create(path: string): Promise<SyncedFile> {
    const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = fs.constants
    return new SyncedFile(await openDescriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_DSYNC, 0o600))
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed) throw new Error('the file is closed')
    this.#writing = this.#write(bytes)
    await this.#writing
  }

  /** Waits for a write: it would go to another file, which gets the number of the descriptor. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing.catch(() => {}) // reported to its caller
    fs.closeSync(this.#descriptor)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let doneBytes = 0; doneBytes < bytes.length;)
      doneBytes += (await writeSome(this.#descriptor, bytes, doneBytes, bytes.length - doneBytes)).bytesWritten
  }
}

/** Writes all bytes at this position: one write may take fewer of them. Syncs nothing. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let doneBytes = 0; doneBytes < bytes.length;)
    doneBytes += (await file.write(bytes, doneBytes, bytes.length - doneBytes, position + doneBytes)).bytesWritten
}

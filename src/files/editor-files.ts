/**
 * The file operations of the editor: read, list, create, replace and remove.
 *
 * They access the host, as the agent's shell does, and so they are not restricted to one root. But they run inside the
 * server's process, which must not expose its own files. Names can be swapped for links at any moment, so nothing is
 * decided by name: a path is first opened without side effects (`O_PATH`), the kernel then reports its real location,
 * and all further steps use the open descriptor. Linux only.
 */
import { constants } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { access, lstat, open, rename, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Listing } from './directory-listing.ts'
import { listTwoLevels } from './directory-listing.ts'
import type { FileRules, Gate } from './jail/file-gate.ts'
import { createGate } from './jail/file-gate.ts'
import { FileRefusal, withRefusals } from './jail/file-refusal.ts'
import { codeOf } from '../lib/error-code.ts'
import type { OpenedPath } from './jail/opened-path.ts'
import { findMissing, makeDirectory, openAt, openDirectory, openUnmoved, within } from './jail/opened-path.ts'
import { makeAlike, publishNew } from './publish-file.ts'
import type { UnfinishedFiles } from './jail/unfinished-files.ts'

/** What exists at a path. `path` is the real one: absolute, without links. */
export type FoundEntry =
  | FoundFile
  /** A file larger than requested; it is not read. */
  | { readonly kind: 'large'; readonly path: string; readonly size: number }
  | { readonly kind: 'directory'; readonly path: string }
  /** The path is neither a file nor a directory; it is not opened. `what` describes it, as in "a named pipe". */
  | { readonly kind: 'special'; readonly path: string; readonly what: string }
  | Missing

export type FoundFile = {
  readonly kind: 'file'
  readonly path: string
  readonly bytes: Buffer
  readonly version: FileVersion
  /** Its permissions. */
  readonly mode: number
}

/** A file can be created here, together with its missing parent directories. */
export type Missing = { readonly kind: 'missing'; readonly path: string }

/** Identifies an unchanged file: includes the change time, which nobody can set back. */
type FileVersion = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'ctimeNs'>

/**
 * Every operation throws a `FileRefusal` for what the file system or a rule does not allow, without any change. A
 * change is atomic: a reader sees the file before or after it, even if the process is killed in between.
 */
export interface EditorFiles {
  /** Reads a whole file of at most `maxBytes`. Follows links. */
  look(path: string, maxBytes: number): Promise<FoundEntry>
  list(directory: string): Promise<Listing>
  /** Refuses if something exists there by now. `mode`: the permissions; by default those of any new file. */
  create(missing: Missing, bytes: Buffer, mode?: number): Promise<void>
  /** Keeps the mode and, if permitted, the owner. Refuses if the file has changed since it was found. */
  replace(file: FoundFile, bytes: Buffer): Promise<void>
  remove(file: FoundFile): Promise<void>
}

/** Reads only. */
export function createFileViews(rules: () => FileRules): Pick<EditorFiles, 'look' | 'list'> {
  const gate = createGate(rules)
  return {
    look: (path, maxBytes) =>
      withRefusals(path, async () => {
        await using place = await openPlace(path, gate)
        if ('missing' in place) return { kind: 'missing', path: place.missing }
        const stats = await place.handle.stat({ bigint: true })
        if (stats.isDirectory()) return { kind: 'directory', path: place.path }
        if (!stats.isFile()) return { kind: 'special', path: place.path, what: nameKind(stats) }
        return await readFile(place, maxBytes)
      }),

    list: (directory) =>
      withRefusals(directory, async () => {
        await using place = await openDirectory(directory)
        await gate.check(place.path, 'read')
        return await listTwoLevels(place, directory, gate)
      }),
  }
}

export function createEditorFiles(rules: () => FileRules, unfinishedFiles: UnfinishedFiles): EditorFiles {
  const gate = createGate(rules)
  const { look, list } = createFileViews(rules)
  const withTemporary = temporaryFilesOf(unfinishedFiles)

  return {
    look,
    list,

    create: (missing, bytes, mode) =>
      withRefusals(missing.path, async () => {
        await gate.check(missing.path, 'write')
        await using directory = await makeDirectory(dirname(missing.path))
        const target = within(directory, basename(missing.path))
        const prepare = async (file: FileHandle) => void (mode !== undefined && (await file.chmod(mode)))
        await withTemporary(directory, bytes, { mode: 0o666, prepare }, (temporary) => publishNew(temporary, target))
      }),

    replace: (file, bytes) =>
      withRefusals(file.path, async () => {
        await gate.check(file.path, 'write')
        await using directory = await openUnmoved(dirname(file.path))
        const target = within(directory, basename(file.path))
        const { mode, uid, gid } = await refuseChanged(target, file)
        // The directory's permission would be enough; but a file without write permission is meant to be protected.
        await access(target, constants.W_OK)
        const prepare = (file: FileHandle) => makeAlike(file, { mode, uid, gid })
        await withTemporary(directory, bytes, { mode: 0o600, prepare }, async (temporary) => {
          await refuseChanged(target, file)
          await rename(temporary, target)
        })
      }),

    remove: (file) =>
      withRefusals(file.path, async () => {
        await gate.check(file.path, 'write')
        await using directory = await openUnmoved(dirname(file.path))
        const target = within(directory, basename(file.path))
        await refuseChanged(target, file)
        await unlink(target)
      }),
  }
}

async function openPlace(
  path: string,
  gate: Gate,
): Promise<OpenedPath | (AsyncDisposable & { readonly missing: string })> {
  try {
    const place = await openAt(path)
    await gate.check(place.path, 'read').catch(async (refusal: unknown) => {
      await place.handle.close()
      throw refusal
    })
    return place
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    const missing = await findMissing(path)
    await gate.check(missing, 'read')
    return { missing, [Symbol.asyncDispose]: async () => {} }
  }
}

async function readFile({ handle, path }: OpenedPath, maxBytes: number): Promise<FoundEntry> {
  // Open it through the descriptor: the opened file is the one that was checked.
  await using reading = await open(`/proc/self/fd/${handle.fd}`, constants.O_RDONLY)
  const version = await reading.stat({ bigint: true })
  if (version.size > maxBytes) return { kind: 'large', path, size: Number(version.size) }
  const bytes = await readAtMost(reading, maxBytes)
  if (!bytes) return { kind: 'large', path, size: Math.max((await reading.stat()).size, maxBytes + 1) }
  return { kind: 'file', path, bytes, version, mode: Number(version.mode) & 0o777 }
}

/** Returns undefined if there are more: a file can grow after its size was checked, up to more than fits into memory. */
async function readAtMost(file: FileHandle, maxBytes: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  for (let length = 0; length <= maxBytes;) {
    const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, maxBytes + 1 - length))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, length)
    if (bytesRead === 0) return Buffer.concat(pieces)
    pieces.push(buffer.subarray(0, bytesRead))
    length += bytesRead
  }
  return undefined
}

const PIECE_BYTES = 64 * 1024

async function refuseChanged(target: string, { path, version }: FoundFile): Promise<BigIntStats> {
  const now = await lstat(target, { bigint: true })
  const isSame =
    now.dev === version.dev && now.ino === version.ino && now.size === version.size && now.ctimeNs === version.ctimeNs
  if (!isSame)
    throw new FileRefusal(
      `${path} was changed by something else at the same moment; nothing was written. View it and try again.`,
    )
  return now
}

type WithTemporary = (
  directory: OpenedPath,
  bytes: Buffer,
  how: { readonly mode: number; readonly prepare: (file: FileHandle) => Promise<void> },
  publish: (temporary: string) => Promise<void>,
) => Promise<void>

/**
 * Returns a function that writes the bytes to disk under a temporary name, and passes it to `publish`; always removes that
 * name afterwards. Not `replaceFile`: this works on open descriptors, and keeps the mode and owner of the old file.
 */
function temporaryFilesOf(unfinishedFiles: UnfinishedFiles): WithTemporary {
  return async (directory, bytes, { mode, prepare }, publish) => {
    const name = await unfinishedFiles.note(directory, 'edit')
    const temporary = within(directory, name)
    try {
      await using file = await open(temporary, 'wx', mode)
      await file.writeFile(bytes)
      await prepare(file)
      // Sync before it replaces the old file, or a power failure could leave an empty one in its place.
      await file.sync()
      await publish(temporary)
    } finally {
      await unlink(temporary).catch(() => {}) // after a rename it does not exist
      await unfinishedFiles.forget(name)
    }
  }
}

function nameKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'a special file'
}

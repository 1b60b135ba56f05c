/**
 * The file operations of the editor: look, list, make, replace, remove, and nothing else of the file system.
 *
 * It works on the host, as the agent's shell does, and so it has no root that it must stay in. But it runs inside the
 * server's own process, which must not be talked into showing its own files. Names can be swapped for links at any
 * moment, so nothing is decided by a name: a path is first opened without any effect (`O_PATH`), the kernel then tells
 * where that really is, and all that follows goes through the open descriptor. Linux only.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { access, lstat, open, rename, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Listing } from './directory-listing.ts'
import { listTwoLevels } from './directory-listing.ts'
import type { FileRules, Gate } from './file-gate.ts'
import { createGate } from './file-gate.ts'
import { FileRefusal, told } from './file-refusal.ts'
import { codeOf } from '../lib/error-code.ts'
import type { OpenedPath } from './opened-path.ts'
import { findMissing, makeDirectory, openAt, openDirectory, openUnmoved, within } from './opened-path.ts'
import { makeAlike, publishNew } from './publish-file.ts'

/** What is at a path. `path` is the real one: absolute, and free of links. */
export type FoundEntry =
  | FoundFile
  /** A file of more bytes than were asked for; it is not read. */
  | { readonly kind: 'large'; readonly path: string; readonly size: number }
  | { readonly kind: 'directory'; readonly path: string }
  /** Neither file nor directory; it is not opened. `what` says what, as in "a named pipe". */
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

/** Where a file can be made, together with the directories that are missing before it. */
export type Missing = { readonly kind: 'missing'; readonly path: string }

/** What tells that a file is still the one that was read, and unchanged: the time that nobody can set back. */
type FileVersion = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'ctimeNs'>

/**
 * Every operation throws a `FileRefusal` for what the file system, or a rule, does not allow, having changed nothing.
 * A change is atomic: a reader sees the file before or the file after, also when the process is killed in between.
 */
export interface EditorFiles {
  /** Reads all of a file of at most `maxBytes`. Links are followed. */
  look(path: string, maxBytes: number): Promise<FoundEntry>
  list(directory: string): Promise<Listing>
  /** Refuses when something is there by now. `mode`: the permissions; by default those of any new file. */
  create(missing: Missing, bytes: Buffer, mode?: number): Promise<void>
  /** Keeps mode and, where it may, owner. Refuses when the file is not the one that was found any more. */
  replace(file: FoundFile, bytes: Buffer): Promise<void>
  remove(file: FoundFile): Promise<void>
}

export function createEditorFiles(rules: () => FileRules): EditorFiles {
  const gate = createGate(rules)

  return {
    look: (path, maxBytes) =>
      told(path, async () => {
        await using place = await openPlace(path, gate)
        if ('missing' in place) return { kind: 'missing', path: place.missing }
        const stats = await place.handle.stat({ bigint: true })
        if (stats.isDirectory()) return { kind: 'directory', path: place.path }
        if (!stats.isFile()) return { kind: 'special', path: place.path, what: nameKind(stats) }
        return await readFile(place, maxBytes)
      }),

    list: (directory) =>
      told(directory, async () => {
        await using place = await openDirectory(directory)
        await gate.check(place.path, 'read')
        return await listTwoLevels(place, gate)
      }),

    create: (missing, bytes, mode) =>
      told(missing.path, async () => {
        await gate.check(missing.path, 'write')
        await using directory = await makeDirectory(dirname(missing.path))
        const target = within(directory, basename(missing.path))
        const prepare = async (file: FileHandle) => void (mode !== undefined && (await file.chmod(mode)))
        await withTemporary(directory, bytes, { mode: 0o666, prepare }, (temporary) => publishNew(temporary, target))
      }),

    replace: (file, bytes) =>
      told(file.path, async () => {
        await gate.check(file.path, 'write')
        await using directory = await openUnmoved(dirname(file.path))
        const target = within(directory, basename(file.path))
        const { mode, uid, gid } = await refuseChanged(target, file)
        // The directory's permission would do; but who takes the right to write from a file means the file.
        await access(target, constants.W_OK)
        const prepare = (file: FileHandle) => makeAlike(file, { mode, uid, gid })
        await withTemporary(directory, bytes, { mode: 0o600, prepare }, async (temporary) => {
          await refuseChanged(target, file)
          await rename(temporary, target)
        })
      }),

    remove: (file) =>
      told(file.path, async () => {
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
  // Through the descriptor: what is opened now is what was looked at.
  await using reading = await open(`/proc/self/fd/${handle.fd}`, constants.O_RDONLY)
  const version = await reading.stat({ bigint: true })
  if (version.size > maxBytes) return { kind: 'large', path, size: Number(version.size) }
  return { kind: 'file', path, bytes: await reading.readFile(), version, mode: Number(version.mode) & 0o777 }
}

async function refuseChanged(target: string, { path, version }: FoundFile): Promise<BigIntStats> {
  const now = await lstat(target, { bigint: true })
  const isSame =
    now.dev === version.dev && now.ino === version.ino && now.size === version.size && now.ctimeNs === version.ctimeNs
  if (!isSame)
    throw new FileRefusal(
      `${path} was changed by something else in this very moment; nothing was written. View it and try again.`,
    )
  return now
}

/**
 * Has the bytes on disk under a name of their own, and hands it to `publish`; whatever happens, the name is gone
 * afterwards. Not `replaceFile`: it works on open descriptors, and keeps the mode and owner of the old file.
 */
async function withTemporary(
  directory: OpenedPath,
  bytes: Buffer,
  { mode, prepare }: { readonly mode: number; readonly prepare: (file: FileHandle) => Promise<void> },
  publish: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = within(directory, `.edit-${randomBytes(8).toString('hex')}.tmp`)
  try {
    await using file = await open(temporary, 'wx', mode)
    await file.writeFile(bytes)
    await prepare(file)
    // Before it takes the name of the old file, or a power cut could leave an empty one in its place.
    await file.sync()
    await publish(temporary)
  } finally {
    await unlink(temporary).catch(() => {}) // after a rename there is none
  }
}

function nameKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'a special file'
}

/**
 * Writes a file as it arrives: to a temporary name first, so that nobody ever sees a part of it, then to its final
 * name.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, open, rename, unlink, utimes } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { Problem } from '../contract/problem.ts'
import { etagOf } from './jail/file-version.ts'
import { codeOf } from '../lib/error-code.ts'
import { refuseToMake } from './jail/jail-path.ts'
import type { OpenedPath } from './jail/opened-path.ts'
import type { JailEntry, Jail } from './jail/path-jail.ts'
import {
  entryPath,
  fileNotFound,
  look,
  makeDirectoriesIn,
  refuseForbidden,
  pathOf,
  requireFile,
  syncOpened,
  withProblems,
  walkAsFarAs,
} from './jail/path-jail.ts'
import { makeAlike, publishNew } from './publish-file.ts'
import type { UnfinishedFiles } from './jail/unfinished-files.ts'

/** The complete content on disk, under a temporary name. Disposing removes it unless it was published. */
export type StagedFile = AsyncDisposable & {
  readonly directory: OpenedPath
  readonly name: string
  readonly file: FileHandle
  readonly size: number
  /** Hash of the content, if requested. */
  readonly sha256: string | undefined
}

export type StageOptions = {
  readonly content: AsyncIterable<Uint8Array>
  readonly unfinished: UnfinishedFiles
  readonly withHash: boolean
}

/** Checks the existing file's entity tag before it is replaced; undefined if there is none. Throws to refuse. */
export type Precondition = (etag: string | undefined) => void

/** `isNew`: only if nothing exists there. */
export type Publishing = { readonly precondition: Precondition; readonly isNew: boolean }

/** Writes whether or not a file exists. */
export const ANY_FILE: Publishing = { precondition: () => {}, isNew: false }

/**
 * Writes next to the target, or in the nearest existing parent directory: missing directories are created after
 * everything was received.
 */
export async function stage(jail: Jail, parent: readonly string[], options: StageOptions): Promise<StagedFile> {
  const { unfinished } = options
  const { place: directory, missing } = await walkAsFarAs(jail, parent)
  let name = ''
  let file: FileHandle | undefined
  const discard = async () => {
    await file?.close()
    // This name does not exist after a rename.
    if (file) await unlink(entryPath(directory, name)).catch(() => {})
    await directory.handle.close()
    if (name !== '') await unfinished.forget(name)
  }
  try {
    missing.map(String).forEach(refuseToMake)
    name = await unfinished.note(directory, 'upload')
    refuseForbidden(jail, pathOf(directory, name), 'write')
    const target = await withProblems(() => jail.io(() => open(entryPath(directory, name), 'wx', 0o666)))
    file = target
    const { size, sha256 } = await writeAll(jail, target, options)
    // Sync before the rename, or a power failure could leave an empty file there.
    await withProblems(() => jail.io(() => target.sync()))
    return { directory, name, file: target, size, sha256, [Symbol.asyncDispose]: discard }
  } catch (error) {
    await discard()
    throw error
  }
}

async function writeAll(jail: Jail, file: FileHandle, { content, withHash }: StageOptions) {
  const hash = withHash ? createHash('sha256') : undefined
  let size = 0
  for await (const chunk of content) {
    hash?.update(chunk)
    for (let doneBytes = 0; doneBytes < chunk.length;) {
      const { bytesWritten } = await withProblems(() => jail.io(() => file.write(chunk, doneBytes)))
      doneBytes += bytesWritten
    }
    size += chunk.length
  }
  return { size, sha256: hash?.digest('hex') }
}

/** Throws early, before anything is written, what `publish` would throw. */
export async function checkTarget(jail: Jail, names: readonly string[], publishing: Publishing): Promise<void> {
  const { place, missing } = await walkAsFarAs(jail, names.slice(0, -1))
  await using parent = place
  const name = lastOf(names)
  await using existing = missing.length > 0 ? undefined : await look(jail, parent, name)
  if (!existing) [...missing.map(String), name].forEach(refuseToMake)
  judgeTarget(existing, publishing)
}

/** Moves the staged content to the path, and creates missing directories; durable when this resolves. */
export async function publish(
  jail: Jail,
  stagedFile: StagedFile,
  names: readonly string[],
  publishing: Publishing,
): Promise<{ created: boolean; etag: string }> {
  const name = lastOf(names)
  await checkTarget(jail, names, publishing)
  await using parent = (await makeDirectoriesIn(jail, names.slice(0, -1))).place
  refuseForbidden(jail, pathOf(parent, name), 'write')
  await using existing = await look(jail, parent, name)
  judgeTarget(existing, publishing)
  const [from, to] = [entryPath(stagedFile.directory, stagedFile.name), entryPath(parent, name)]
  if (existing) await takeAfter(jail, stagedFile.file, existing)
  await jail
    .io(() => (publishing.isNew ? publishNew(from, to) : rename(from, to)))
    .catch((error: unknown) => {
      throw conflictFor(error)
    })
  await syncOpened(jail, parent)
  const etag = etagOf(await jail.io(() => stagedFile.file.stat({ bigint: true })))
  return { created: !existing, etag }
}

/** Creates an empty file, or updates the time of the existing one; its content is kept. */
export async function touch(jail: Jail, names: readonly string[], { precondition }: Publishing) {
  await using parent = await openParent(jail, names)
  await using existing = parent && (await look(jail, parent, lastOf(names)))
  if (!existing) return undefined
  refuseForbidden(jail, existing.path, 'write')
  judgeTarget(existing, { precondition, isNew: false })
  const now = new Date()
  // Use the descriptor: it is exactly that file, and never a link's target.
  await withProblems(() => jail.io(() => utimes(`/proc/self/fd/${existing.handle.fd}`, now, now)))
  const stats = await jail.io(() => existing.handle.stat({ bigint: true }))
  return { size: Number(stats.size), etag: etagOf(stats) }
}

async function openParent(jail: Jail, names: readonly string[]): Promise<OpenedPath | undefined> {
  const { place, missing } = await walkAsFarAs(jail, names.slice(0, -1))
  if (missing.length === 0) return place
  await place.handle.close()
  return undefined
}

function judgeTarget(existing: JailEntry | undefined, { precondition, isNew }: Publishing): void {
  if (existing && isNew) throw fileExists()
  if (existing) requireFile(existing)
  precondition(existing && etagOf(existing.stats))
}

/**
 * Keeps the mode and, if permitted, the owner. A file without write permission is meant to be protected itself,
 * whatever its directory allows.
 */
async function takeAfter(jail: Jail, file: FileHandle, existing: JailEntry): Promise<void> {
  await withProblems(() => jail.io(() => access(`/proc/self/fd/${existing.handle.fd}`, constants.W_OK)))
  await withProblems(() => jail.io(() => makeAlike(file, existing.stats)))
}

/** Reports a file that was created since the check. */
function conflictFor(error: unknown): unknown {
  const code = codeOf(error)
  if (code === 'EEXIST') return fileExists()
  if (code === 'EISDIR' || code === 'ENOTEMPTY') return new Problem('not_a_file', 'This is a directory.')
  return code === 'ENOENT' ? fileNotFound() : error
}

const fileExists = () =>
  new Problem('precondition_failed', 'Something already exists at this path; nothing was written.')

/** A file has a name: routes refuse the workdir itself before. */
const lastOf = (names: readonly string[]): string => names.at(-1) ?? '.'

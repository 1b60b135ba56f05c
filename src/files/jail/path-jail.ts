/**
 * The only file that decides whether a client's path is inside the workdir.
 *
 * Nothing is decided by name: names can be swapped for links at any moment. Starting at the workdir, each directory is
 * opened relative to the previous one, and never through a link; the final operation uses the last open directory. So
 * links are never followed, wherever they lead. Linux only. Own code: Node has no `openat`, and libraries check names
 * before they open them.
 */
import { constants } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { mkdir, open, readlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { Problem } from '../../contract/problem.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import type { FileRules, Judge } from './file-gate.ts'
import { readRules } from './file-gate.ts'
import { codeOf, ignoring, isOutOfDescriptors } from '../../lib/error-code.ts'
import { refuseToMake, unsafePath } from './jail-path.ts'
import type { OpenedPath } from './opened-path.ts'
import { O_PATH, openDirectory, within } from './opened-path.ts'

/** A name on disk is bytes, and need not be text. */
export type FileName = string | Buffer

export type JailOptions = {
  /** Absolute, without links. */
  readonly workdir: string
  readonly rules: FileRules
  /** Runs every file system operation. */
  readonly io: <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>
  readonly signal: AbortSignal
}

/** The workdir, held open for one request. */
export type Jail = AsyncDisposable & {
  readonly root: OpenedPath
  readonly rules: Judge
  readonly io: <T>(work: () => Promise<T>) => Promise<T>
}

export type Kind = 'file' | 'directory' | 'symlink' | 'other'

/** An entry, held without opening its content: this has no effect on pipes and devices. */
export type JailEntry = OpenedPath & { readonly kind: Kind; readonly stats: BigIntStats }

/** Every operation throws a `Problem` if the path is outside, does not exist, or is not allowed. */
export async function openJail({ workdir, rules, io: waitFor, signal }: JailOptions): Promise<Jail> {
  const io: Jail['io'] = (work) => waitFor(work, signal)
  const judge = await io(() => readRules(rules))
  const root = await io(() => openDirectory(workdir)).catch((cause: unknown) => {
    // A disk that fails, or a lack of descriptors, says nothing about the directory.
    if (!NOT_THERE.has(codeOf(cause) ?? '')) throw problemOf(cause)
    throw new Problem('workdir_missing', WORKDIR_MISSING, { cause })
  })
  // A name in its path was swapped for a link, or the directory was moved or removed.
  if (root.path !== workdir) {
    await root.handle.close()
    throw new Problem('workdir_missing', WORKDIR_MISSING)
  }
  return { root, rules: judge, io, [Symbol.asyncDispose]: () => root.handle.close() }
}

const WORKDIR_MISSING =
  'The working directory of the conversation no longer exists; create it again, or configure another one.'

const NOT_THERE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** Opens the directory at the path; all of it must exist. */
export async function openDirectoryIn(jail: Jail, names: readonly FileName[]): Promise<OpenedPath> {
  const { place, missing } = await walkAsFarAs(jail, names)
  if (missing.length === 0) return place
  await place.handle.close()
  throw fileNotFound()
}

/** Opens as many directories of the path as exist; `missing` are the other names. */
export async function walkAsFarAs(
  jail: Jail,
  names: readonly FileName[],
): Promise<{ place: OpenedPath; missing: readonly FileName[] }> {
  // oxlint-disable-next-line typescript/no-non-null-assertion -- an open directory always has itself
  let place = (await enter(jail, jail.root, '.'))!
  for (const [at, name] of names.entries()) {
    const next = await closingOnFailure(place, () => enter(jail, place, name))
    if (!next) return { place, missing: names.slice(at) }
    await place.handle.close()
    place = next
  }
  return { place, missing: [] }
}

/** Opens the directory at the path, and creates missing directories; `made` is true if there were any. */
export async function makeDirectoriesIn(
  jail: Jail,
  names: readonly FileName[],
): Promise<{ place: OpenedPath; made: boolean }> {
  const { place: deepest, missing } = await walkAsFarAs(jail, names)
  await closingOnFailure(deepest, async () => missing.map(String).forEach(refuseToMake))
  let place = deepest
  for (const name of missing) {
    const next = await closingOnFailure(place, async () => {
      refuseForbidden(jail, pathOf(place, name), 'write')
      await withProblems(() => jail.io(() => mkdir(entryPath(place, name)))).catch(ignoring('EEXIST'))
      await syncOpened(jail, place)
      return await enter(jail, place, name)
    })
    await place.handle.close()
    if (!next) throw fileNotFound()
    place = next
  }
  return { place, made: missing.length > 0 }
}

/** Opens a directory inside an open one; returns undefined if it does not exist. */
export async function enter(jail: Jail, directory: OpenedPath, name: FileName): Promise<OpenedPath | undefined> {
  const path = pathOf(directory, name)
  refuseForbidden(jail, path, 'read')
  const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW
  try {
    return placeAt(await jail.io(() => open(entryPath(directory, name), flags)), path)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return undefined
    if (code !== 'ENOTDIR') throw problemOf(error)
    await using entry = await look(jail, directory, name)
    throw entry?.kind === 'symlink' ? isLink() : notADirectory()
  }
}

/** Returns the entry at a name of an open directory, including links themselves; undefined if there is none. */
export async function look(jail: Jail, directory: OpenedPath, name: FileName): Promise<JailEntry | undefined> {
  const path = pathOf(directory, name)
  refuseForbidden(jail, path, 'read')
  try {
    const flags = O_PATH | constants.O_NOFOLLOW
    const place = placeAt(await jail.io(() => open(entryPath(directory, name), flags)), path)
    const stats = await closingOnFailure(place, () => jail.io(() => place.handle.stat({ bigint: true })))
    return { ...place, stats, kind: kindOf(stats) }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw problemOf(error)
  }
}

/** Opens the checked entry for reading, whatever its name refers to by now. Throws unless it is a file. */
export async function openToRead(jail: Jail, entry: JailEntry): Promise<FileHandle> {
  requireFile(entry)
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
  return await withProblems(() => jail.io(() => open(`/proc/self/fd/${entry.handle.fd}`, flags)))
}

export function requireFile({ kind }: Pick<JailEntry, 'kind'>): void {
  if (kind === 'symlink') throw isLink()
  if (kind === 'directory')
    throw new Problem('not_a_file', 'This is a directory; list it, or get it with ?format=tar.gz.')
  if (kind === 'other') throw new Problem('not_a_file', 'This is a pipe, a socket or a device, which cannot be opened.')
}

/** Syncs the names in this directory to disk. */
export async function syncOpened(jail: Jail, directory: OpenedPath): Promise<void> {
  await jail.io(() => syncDirectory(entryPath(directory, '.')))
}

export async function readLink(jail: Jail, directory: OpenedPath, name: FileName): Promise<Buffer> {
  return await withProblems(() => jail.io(() => readlink(entryPath(directory, name), { encoding: 'buffer' })))
}

/** Refuses the server's own files, even inside the workdir. */
export function refuseForbidden({ rules }: Pick<Jail, 'rules'>, path: string, access: 'read' | 'write'): void {
  if (!rules.judge(path)[access]) throw unsafePath('it belongs to the server')
}

/** Returns the path of a name in an open directory, even if the directory's own name has changed its meaning. */
export function entryPath(directory: OpenedPath, name: FileName): FileName {
  return typeof name === 'string' ? within(directory, name) : Buffer.concat([Buffer.from(within(directory, '')), name])
}

export const pathOf = (directory: Pick<OpenedPath, 'path'>, name: FileName): string =>
  name === '.' ? directory.path : `${directory.path === '/' ? '' : directory.path}/${String(name)}`

function kindOf(stats: BigIntStats): Kind {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : 'other'
}

const placeAt = (handle: FileHandle, path: string): OpenedPath => ({
  handle,
  path,
  [Symbol.asyncDispose]: () => handle.close(),
})

async function closingOnFailure<T>({ handle }: Pick<OpenedPath, 'handle'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Runs the work and turns system errors into a `Problem`. */
export async function withProblems<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw problemOf(error)
  }
}

function problemOf(cause: unknown): unknown {
  const make = PROBLEM_OF_CODE[codeOf(cause) ?? '']
  return make && !(cause instanceof Problem) ? Object.assign(make(), { cause }) : cause
}

/** Lets work leave out what cannot be read: what only lacks a descriptor must not look as if it did not exist. */
export function leftOut(error: unknown): undefined {
  if (isOutOfDescriptors(error)) throw error
}

export const fileNotFound = () => new Problem('file_not_found', 'Nothing exists at this path in the workdir.')
const isLink = () => unsafePath('it contains a symbolic link, and links are not followed')
const notADirectory = () => new Problem('not_a_directory', 'A part of this path is a file and not a directory.')
const forbidden = () =>
  new Problem(
    'file_forbidden',
    'The server’s user is not permitted to do this; check the owner and the permissions of the file.',
  )

const PROBLEM_OF_CODE: Readonly<Record<string, () => Problem>> = {
  ENOENT: fileNotFound,
  ENOTDIR: notADirectory,
  ELOOP: isLink,
  ENAMETOOLONG: () => unsafePath('it is longer than the file system allows'),
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: forbidden,
  ETXTBSY: forbidden,
}

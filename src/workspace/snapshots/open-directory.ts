/**
 * Looks into open directories: names are relative to a descriptor, and no link is followed. What was looked at before is in
 * memory, so on a local disk no thread is needed; a file system of another machine may not answer.
 */
import fs, { constants } from 'node:fs'
import type { Dirent, Stats } from 'node:fs'
import { readlink, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Slices } from '../../lib/time-slices.ts'
import type { FileStat } from './tree-entry.ts'
import { isSameStat, shownPath, toBytes } from './tree-entry.ts'

type Place = {
  /** The real one. */
  readonly path: string
  /** Its names are looked at without a thread, while they are on the disk with this number. */
  readonly quick: number | undefined
}

/** It may be opened when it is needed first. `Symbol.dispose` closes it. */
export class OpenDirectory implements Disposable {
  readonly path: string
  readonly quick: number | undefined
  #opened: number | (() => number)

  /** A function may throw what the system reports. */
  constructor({ path, quick }: Place, descriptor: number | (() => number)) {
    this.path = path
    this.quick = quick
    this.#opened = descriptor
  }

  get fd(): number {
    return typeof this.#opened === 'number' ? this.#opened : (this.#opened = this.#opened())
  }

  [Symbol.dispose](): void {
    // This is from memory, which costs less than to hand it to the thread pool.
    if (typeof this.#opened === 'number') fs.closeSync(this.#opened)
  }
}

/** The path of a name in an open directory; as bytes if it need be, because a name need not be UTF-8. */
export function inDirectory({ fd }: Pick<OpenDirectory, 'fd'>, name: string): string | Buffer {
  const path = `/proc/self/fd/${fd}/${name}`
  return isAscii(path) ? path : toBytes(path)
}

// oxlint-disable-next-line no-control-regex -- all of ASCII
const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text)

// Functions with a callback, and one promise for many: each promise of a file costs as much as the call.
const openDescriptor = promisify(fs.open)
const readNames = promisify(fs.readdir)
const statDescriptor = promisify(fs.fstat)

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const NAMES = { withFileTypes: true, encoding: 'latin1' } as const

/** The types of ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS and ZFS. */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1,
])

/** The number of the disk, if it is one of this machine. */
async function localDiskOf(fd: number): Promise<number | undefined> {
  const [{ type }, { dev }] = await Promise.all([statfs(`/proc/self/fd/${fd}`), statDescriptor(fd)])
  return LOCAL.has(type) ? dev : undefined
}

/** The caller disposes of it. Throws if the path leads elsewhere. */
export async function openRoot(path: string, isKnown: boolean): Promise<OpenDirectory> {
  const fd = await openDescriptor(path, DIRECTORY)
  try {
    if ((await readlink(`/proc/self/fd/${fd}`)) !== path) throw new Error(`${path} was moved meanwhile`)
    return new OpenDirectory({ path, quick: isKnown ? await localDiskOf(fd) : undefined }, fd)
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}

/** The caller disposes of `inner`. `stats` are from before anything is read. */
export async function openInner(directory: OpenDirectory, name: string) {
  const at = inDirectory(directory, name)
  const isQuick = directory.quick !== undefined
  const fd = isQuick ? fs.openSync(at, DIRECTORY) : await openDescriptor(at, DIRECTORY)
  const stats = isQuick ? fs.fstatSync(fd) : await statDescriptor(fd)
  const quick = stats.dev === directory.quick ? stats.dev : undefined
  return { inner: new OpenDirectory({ path: `${directory.path}/${shownPath(name)}`, quick }, fd), stats }
}

export async function namesIn(directory: OpenDirectory): Promise<readonly Dirent[]> {
  const at = inDirectory(directory, '.')
  return directory.quick === undefined ? await readNames(at, NAMES) : fs.readdirSync(at, NAMES)
}

/** Returns the directory if it is the one that was seen. It is opened only if something in it has changed. */
export function unchangedInner(directory: OpenDirectory, name: string, seenStat: FileStat) {
  const stats = lstatSeen(directory, name, seenStat)
  if (!stats?.isDirectory() || stats.dev !== directory.quick) return undefined
  const place = { path: `${directory.path}/${name}`, quick: directory.quick }
  return { inner: new OpenDirectory(place, () => fs.openSync(inDirectory(directory, name), DIRECTORY)), stats }
}

/**
 * Returns what a name is if it is what was seen, on a local disk. Its path costs half of what a descriptor costs, and may lead
 * anywhere by now: what is not what was seen counts for nothing.
 */
export function lstatSeen({ path, quick }: OpenDirectory, name: string, seenStat: FileStat): Stats | undefined {
  if (quick === undefined || !isAscii(name)) return undefined
  try {
    const stats = fs.lstatSync(`${path}/${name}`, NO_ERROR)
    return stats && isSameStat(stats, seenStat) ? stats : undefined
  } catch {
    return undefined
  }
}

const NO_ERROR = { throwIfNoEntry: false } as const

/** Calls that wait for a thread at a time, so that others get theirs. */
const BATCH = 64

type NamedChild = { readonly name: string }

/** Returns, in the order of the names, what each is, or why that is not known. */
export async function lstatAll(
  directory: OpenDirectory,
  names: readonly NamedChild[],
  slices: Slices,
): Promise<readonly (Stats | Error)[]> {
  const foundStats: (Stats | Error)[] = []
  for (let start = 0; start < names.length; start += BATCH) {
    const batch = names.slice(start, start + BATCH)
    if (directory.quick === undefined) foundStats.push(...(await lstatInThreads(directory, batch)))
    else {
      await slices.rest()
      for (const { name } of batch) foundStats.push(lstatNow(inDirectory(directory, name)))
    }
  }
  return foundStats
}

async function lstatInThreads(
  directory: OpenDirectory,
  batch: readonly NamedChild[],
): Promise<readonly (Stats | Error)[]> {
  const foundStats: (Stats | Error)[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  let remainingCount = batch.length
  for (const [index, { name }] of batch.entries())
    fs.lstat(inDirectory(directory, name), (error, stats) => {
      foundStats[index] = error ?? stats
      if (--remainingCount === 0) resolve()
    })
  await promise
  return foundStats
}

/** Looks at once: to hand each name to a thread costs five times as much. */
function lstatNow(path: string | Buffer): Stats | Error {
  try {
    return fs.lstatSync(path)
  } catch (error) {
    if (error instanceof Error) return error
    throw error
  }
}

/**
 * Looks into open directories: names are relative to a descriptor, and no link is followed. What was looked at before is in
 * memory, so on a local disk no thread is needed; a file system of another machine may not answer.
 */
import fs, { constants } from 'node:fs'
import type { Dirent, Stats } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Slices } from '../../lib/time-slices.ts'
import { toBytes } from './tree-entry.ts'

/** `path` is the real one. `quick`: its names are looked at without a thread, while they are on the disk with this number. */
export type OpenDirectory = { readonly fd: number; readonly path: string; readonly quick: number | undefined }

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
export async function localDiskOf(fd: number): Promise<number | undefined> {
  const [{ type }, { dev }] = await Promise.all([statfs(`/proc/self/fd/${fd}`), statDescriptor(fd)])
  return LOCAL.has(type) ? dev : undefined
}

/** The caller closes it. */
export const openRoot = (path: string): Promise<number> => openDescriptor(path, DIRECTORY)

/** The caller closes `fd`. */
export async function openInner(directory: OpenDirectory, name: string) {
  const at = inDirectory(directory, name)
  const isQuick = directory.quick !== undefined
  const fd = isQuick ? fs.openSync(at, DIRECTORY) : await openDescriptor(at, DIRECTORY)
  const { mode, dev } = isQuick ? fs.fstatSync(fd) : await statDescriptor(fd)
  return { fd, mode, quick: dev === directory.quick ? dev : undefined }
}

export async function namesIn(directory: OpenDirectory): Promise<readonly Dirent[]> {
  const at = inDirectory(directory, '.')
  return directory.quick === undefined ? await readNames(at, NAMES) : fs.readdirSync(at, NAMES)
}

/** Calls that wait for a thread at a time, so that others get theirs. */
const BATCH = 64

type Named = { readonly name: string }

/** In the order of the names: what each is, or why that is not known. */
export async function lstatAll(
  directory: OpenDirectory,
  names: readonly Named[],
  slices: Slices,
): Promise<readonly (Stats | Error)[]> {
  const found: (Stats | Error)[] = []
  for (let start = 0; start < names.length; start += BATCH) {
    const batch = names.slice(start, start + BATCH)
    if (directory.quick === undefined) found.push(...(await lstatInThreads(directory, batch)))
    else {
      await slices.rest()
      for (const { name } of batch) found.push(lstatNow(inDirectory(directory, name)))
    }
  }
  return found
}

async function lstatInThreads(directory: OpenDirectory, batch: readonly Named[]): Promise<readonly (Stats | Error)[]> {
  const found: (Stats | Error)[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = batch.length
  for (const [index, { name }] of batch.entries())
    fs.lstat(inDirectory(directory, name), (error, stats) => {
      found[index] = error ?? stats
      if (--left === 0) resolve()
    })
  await promise
  return found
}

/** To hand each name to a thread costs five times as much as to look at it. */
function lstatNow(path: string | Buffer): Stats | Error {
  try {
    return fs.lstatSync(path)
  } catch (error) {
    if (error instanceof Error) return error
    throw error
  }
}

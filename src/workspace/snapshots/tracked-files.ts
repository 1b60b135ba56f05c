/**
 * Finds which files the user's repository tracks: a rule of a `.gitignore` does not hold for them. Reads the index
 * without git, which would read the settings of the repository. Paths are bytes as characters (latin1).
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import type { Slices } from '../../lib/time-slices.ts'
import type { OpenDirectory } from './open-directory.ts'
import { inDirectory, openInner } from './open-directory.ts'
import { readUpTo } from './read-up-to.ts'
import type { FileStat } from './tree-entry.ts'
import { isSameStat } from './tree-entry.ts'

/** A larger index is not read: the rules hold for all files then. */
const MAX_INDEX_BYTES = 16 * 1024 ** 2

/** What the next look remembers; `digest` is empty without an index. */
export type KnownTracked = { readonly seen: FileStat | undefined; readonly digest: string }

export class TrackedFiles {
  readonly knownTracked: KnownTracked
  readonly #root: OpenDirectory
  readonly #slices: Slices
  /** Sorted. */
  #paths: readonly string[] | undefined

  private constructor({ root, slices }: Reading, knownIndex: KnownTracked, paths?: readonly string[]) {
    this.#root = root
    this.#slices = slices
    this.knownTracked = knownIndex
    this.#paths = paths
  }

  /** An unchanged index is not read before a path is looked up. */
  static async open(root: OpenDirectory, last: KnownTracked | undefined, slices: Slices): Promise<TrackedFiles> {
    const reading = { root, slices }
    const foundIndex = await readIndex(reading, last?.seen)
    if (foundIndex === 'unchanged' && last) return new TrackedFiles(reading, last)
    if (!foundIndex || foundIndex === 'unchanged') return new TrackedFiles(reading, { seen: undefined, digest: '' }, [])
    const { seen, paths } = foundIndex
    return new TrackedFiles(reading, { seen, digest: await digestOf(paths, slices) }, paths)
  }

  /** A directory is tracked if a file below it is. */
  async has(path: string, isDirectory: boolean): Promise<boolean> {
    const paths = (this.#paths ??= await this.#read())
    const wantedPath = isDirectory ? `${path}/` : path
    const foundPath = paths[firstFrom(paths, wantedPath)]
    return isDirectory ? (foundPath?.startsWith(wantedPath) ?? false) : foundPath === wantedPath
  }

  async #read(): Promise<readonly string[]> {
    const foundIndex = await readIndex({ root: this.#root, slices: this.#slices }, undefined)
    return foundIndex && foundIndex !== 'unchanged' ? foundIndex.paths : []
  }
}

async function digestOf(paths: readonly string[], slices: Slices): Promise<string> {
  const hash = createHash('sha256')
  for (let start = 0; start < paths.length; start += BATCH) {
    await slices.rest()
    hash.update(`${paths.slice(start, start + BATCH).join('\0')}\0`)
  }
  return hash.digest('hex')
}

type Reading = { readonly root: OpenDirectory; readonly slices: Slices }

/** Returns the place of the first path that is not less. */
function firstFrom(paths: readonly string[], wantedPath: string): number {
  let [low, high] = [0, paths.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((paths[middle] ?? '') < wantedPath) low = middle + 1
    else high = middle
  }
  return low
}

/** Follows no link: each of these names may lead to the outside. Undefined if there is no index that can be read. */
async function readIndex(
  { root, slices }: Reading,
  last: FileStat | undefined,
): Promise<{ readonly seen: FileStat; readonly paths: readonly string[] } | 'unchanged' | undefined> {
  try {
    using git = (await openInner(root, '.git')).inner
    let isUnchanged = false
    const mayRead = (stats: Stats) => {
      isUnchanged = last !== undefined && isSameStat(last, stats)
      return !isUnchanged && stats.size <= MAX_INDEX_BYTES
    }
    const read = await readUpTo(inDirectory(git, 'index'), { limit: MAX_INDEX_BYTES, mayRead })
    if (isUnchanged) return 'unchanged'
    if (!read) return undefined
    const { size, mtimeMs, ctimeMs, ino } = read.stats
    const paths = await parseIndex(read.content, slices)
    return paths && { seen: { size, mtimeMs, ctimeMs, ino }, paths }
  } catch {
    return undefined
  }
}

/** Bytes before the flags of an entry: times, numbers and the SHA-1 of the content. */
const [MODE_AT, FLAGS_AT, HEADER_BYTES] = [24, 60, 12]
const EXTENDED = 0x40_00
/** A submodule, or a directory of a sparse index. */
const NO_FILES: ReadonlySet<number> = new Set([0o160_000, 0o040_000])
/** The limits of one path, and of all together: the fourth version repeats no beginning. */
const [MAX_PATH_BYTES, MAX_ALL_BYTES] = [4096, 48 * 1024 ** 2]
/** Entries that are read before others get a turn. */
const BATCH = 256

/** See gitformat-index(5); sorted. Undefined for what it does not describe, such as an index whose entries are in another file. */
export async function parseIndex(content: Buffer, slices: Slices): Promise<string[] | undefined> {
  const version = content.length < HEADER_BYTES ? 0 : content.readUInt32BE(4)
  if (content.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) return undefined
  const files: string[] = []
  let bytes = 0
  let at = HEADER_BYTES
  let former = ''
  for (let remainingEntries = content.readUInt32BE(8); remainingEntries > 0; remainingEntries--) {
    if (remainingEntries % BATCH === 0) await slices.rest()
    if (at + FLAGS_AT + 2 > content.length) return undefined
    const mode = content.readUInt32BE(at + MODE_AT) & 0o170_000
    const isExtended = (content.readUInt16BE(at + FLAGS_AT) & EXTENDED) !== 0
    let start = at + FLAGS_AT + (isExtended ? 4 : 2)
    let keptText = ''
    if (version === 4) {
      const [removedBytes, length] = readOffset(content, start)
      if (removedBytes > former.length) return undefined
      start += length
      keptText = former.slice(0, former.length - removedBytes)
    }
    const end = content.indexOf(0, start)
    const path = keptText + content.toString('latin1', start, end)
    if (end < 0 || path === '' || path.length > MAX_PATH_BYTES || (bytes += path.length) > MAX_ALL_BYTES)
      return undefined
    // Git refuses such an index, too.
    if (path < former) return undefined
    if (!NO_FILES.has(mode)) files.push(path)
    former = path
    // An entry has, before version 4, a length that 8 divides, with at least one zero at its end.
    at = version === 4 ? end + 1 : at + 8 * Math.floor((end - at) / 8 + 1)
  }
  return files
}

/** The number of bytes that a path has not of the path before it, as in offsets of packs. */
function readOffset(content: Buffer, from: number): readonly [value: number, length: number] {
  let at = from
  let byte = content[at++] ?? 0
  let value = byte & 0x7f
  while (byte & 0x80) {
    byte = content[at++] ?? 0
    value = (value + 1) * 128 + (byte & 0x7f)
  }
  return [value, at - from]
}

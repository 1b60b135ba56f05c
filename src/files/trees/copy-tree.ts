/**
 * Copies a directory that may be changing meanwhile. Opens each name relative to its open parent and never follows
 * links, so nothing from outside is copied, whatever a name is swapped for.
 */
import { constants } from 'node:fs'
import { chmod, lstat, mkdir, open, opendir, readlink, symlink, utimes } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { createFileCopier } from './copy-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import { openAt, openDirectory, within } from '../jail/opened-path.ts'
import { isTemporaryName } from '../jail/unfinished-files.ts'

export type CopyOptions = {
  /** Real paths of directories to leave out. */
  readonly without: readonly string[]
  readonly signal: AbortSignal
  readonly limits?: CopyLimits
}

export type CopyLimits = {
  readonly entries: number
  /** Includes holes in files: finding them takes as long as reading. */
  readonly bytes: number
}

const LIMITS: CopyLimits = { entries: 1_000_000, bytes: 50 * 1024 ** 3 }

/** Files of one directory that are copied concurrently. */
const CONCURRENCY = 8
/** Names per read of a directory. */
const READ_AHEAD = 256
/** Each level holds a descriptor while the levels below are copied. */
const MAX_DEPTH = 256
/** More warnings would not help to see what is missing. */
const MAX_WARNINGS = 20

/** Permission bits, without those that would let users of a copy with another owner become that owner. */
const MODE_BITS = 0o1777

/**
 * Copies into `to`, which must exist. Links are copied as links, files share their blocks if the file system can, and
 * keep their holes; other kinds of entries and unreadable ones are left out. Returns what was left out, in words.
 * Throws a `Problem` if it exceeds the limits, and when the signal ends it; the caller removes what was copied by then,
 * and nothing more is written after it has thrown.
 */
export async function copyTree(from: string, to: string, options: CopyOptions): Promise<string[]> {
  return await new TreeCopy(from, to, options).run()
}

/** One copy, with its counters and warnings so far. */
class TreeCopy {
  readonly #from: string
  readonly #to: string
  readonly #signal: AbortSignal
  readonly #without: readonly string[]
  readonly #limits: CopyLimits
  readonly #copyFile = createFileCopier()
  readonly #warnings = new Set<string>()
  #unnamed = 0
  #entries = 0
  #bytes = 0

  constructor(from: string, to: string, { signal, without, limits = LIMITS }: CopyOptions) {
    this.#from = from
    this.#to = to
    this.#signal = signal
    this.#without = without
    this.#limits = limits
  }

  async run(): Promise<string[]> {
    await this.#orPassedOver({ name: this.#from, path: this.#from }, async () => {
      await using root = await openDirectory(this.#from)
      // It may have been replaced by a link to what its conversation may not read.
      if (root.path !== this.#from)
        throw new Problem('unsafe_path', 'The workdir was moved, and its path leads elsewhere now. Move it back.')
      await this.#copyDirectory(root, '', 0)
    })
    return [...this.#warnings, ...(this.#unnamed > 0 ? [`${this.#unnamed} more were not copied`] : [])]
  }

  async #copyDirectory(source: OpenedPath, path: string, depth: number): Promise<void> {
    const directories: Entry[] = []
    await forEachName(source, async (name) => {
      const entry: Entry = { source, name, path: join(path, name), target: join(this.#to, path, name) }
      if ((await this.#orPassedOver(entry, () => this.#copyFlat(entry))) === 'directory') directories.push(entry)
    })
    // One after another: concurrently, each level would multiply the open descriptors.
    for (const entry of directories) await this.#orPassedOver(entry, () => this.#descend(entry, depth))
  }

  async #copyFlat(entry: Entry): Promise<'directory' | void> {
    const { source, name, path, target } = entry
    if (isTemporaryName(name)) return
    const facts = await lstat(within(source, name))
    this.#count(facts.isFile() ? facts.size : 0)
    if (facts.isDirectory()) return 'directory'
    if (facts.isSymbolicLink()) return await symlink(await readlink(within(source, name)), target)
    if (facts.isFile()) return await this.#copyContent(entry, facts.size)
    this.#warn(path, 'it is not a file, link or directory')
  }

  async #copyContent({ source, name, target }: Entry, size: number): Promise<void> {
    // Do not block on a fifo that has replaced the file.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    await using file = await open(within(source, name), flags)
    const facts = await file.stat()
    if (!facts.isFile()) return
    // The copy has never more than was counted, however much it has grown since.
    const check = () => this.#check()
    await this.#copyFile({ source: file, size: Math.min(size, facts.size), target, check })
    await keepFacts(target, facts)
  }

  async #descend({ source, name, path, target }: Entry, depth: number): Promise<void> {
    if (depth === MAX_DEPTH) return this.#warn(path, 'it is nested too deeply')
    await using inner = await openAt(within(source, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    if (this.#without.includes(inner.path)) return this.#warn(path, 'it belongs to the server')
    await mkdir(target, { mode: 0o700 })
    await this.#copyDirectory(inner, path, depth + 1)
    await keepFacts(target, await inner.handle.stat())
  }

  async #orPassedOver<T>({ name, path }: Pick<Entry, 'name' | 'path'>, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      const code = codeOf(error)
      if (error instanceof Problem || code === undefined || !PASSED_OVER.has(code)) throw error
      // It was removed meanwhile, unless its name is not valid UTF-8.
      const isUnreadable = code !== 'ENOENT' || name.includes(NOT_UTF8) || path === this.#from
      if (isUnreadable) this.#warn(path, `it cannot be read (${code})`)
      return undefined
    }
  }

  #warn(path: string, why: string): void {
    if (this.#warnings.size < MAX_WARNINGS) this.#warnings.add(`${path} was not copied: ${why}`)
    else this.#unnamed++
  }

  #check(): void {
    if (this.#signal.aborted) throw new Problem('unavailable', 'The server is stopping; try again when it is running.')
  }

  #count(size: number): void {
    this.#check()
    this.#entries++
    this.#bytes += size
    if (this.#entries > this.#limits.entries || this.#bytes > this.#limits.bytes) throw tooLarge(this.#limits)
  }
}

type Entry = { readonly source: OpenedPath; readonly name: string; readonly path: string; readonly target: string }

/** Errors of entries that were removed, replaced, or are not accessible. */
const PASSED_OVER: ReadonlySet<string> = new Set([
  'ENOENT',
  'EACCES',
  'EPERM',
  'ELOOP',
  'ENOTDIR',
  'EINVAL',
  'ENXIO',
  'ENODEV',
  'ENAMETOOLONG',
])

/** Replaces bytes of a name that are not UTF-8. */
const NOT_UTF8 = '\uFFFD'

async function keepFacts(target: string, { mode, atime, mtime }: Stats): Promise<void> {
  await chmod(target, mode & MODE_BITS)
  await utimes(target, atime, mtime)
}

/** Reads names on demand, because a directory can have millions. No work continues after this has thrown. */
async function forEachName({ handle }: OpenedPath, work: (name: string) => Promise<void>): Promise<void> {
  const listing = await opendir(`/proc/self/fd/${handle.fd}`, { bufferSize: READ_AHEAD })
  let hasFailed = false
  const workAll = async () => {
    try {
      for (let entry = await listing.read(); entry; entry = await listing.read()) {
        if (hasFailed) return
        await work(entry.name)
      }
    } catch (error) {
      hasFailed = true
      throw error
    }
  }
  try {
    const ends = await Promise.allSettled(Array.from({ length: CONCURRENCY }, workAll))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  } finally {
    await listing.close()
  }
}

const tooLarge = ({ entries, bytes }: CopyLimits) =>
  new Problem(
    'workdir_too_large',
    `The workdir holds more than ${entries} files or ${bytes} bytes, too much for a copy (a sparse file counts with its full size); share it, or make it smaller.`,
  )

/**
 * Reads the tree of a workdir: its entries, what is left out, and the content of what has changed since the last look.
 * Opens each name relative to its open directory and never follows links, so that nothing from outside is read, whatever a
 * name is swapped for meanwhile.
 */
import { createHash } from 'node:crypto'
import { constants, lstat, readdir } from 'node:fs'
import type { Dirent, Stats } from 'node:fs'
import { open, readlink } from 'node:fs/promises'
import { codeOf } from '../../lib/error-code.ts'
import type { OpenedPath } from '../../files/jail/opened-path.ts'
import { openAt, openDirectory, within } from '../../files/jail/opened-path.ts'
import { isTemporaryName } from '../../files/jail/unfinished-files.ts'
import type { IgnoreRules } from './ignore-rules.ts'
import { matchIgnoreRules, readIgnoreRules } from './ignore-rules.ts'
import type { FileStat, LeftOut, LeftOutReason, RootTree, TreeEntry } from './tree-entry.ts'
import { fromBytes, isSameStat, MODE_BITS } from './tree-entry.ts'

/** Larger files are left out. */
export const MAX_FILE_BYTES = 10 * 1024 ** 2
export const MAX_ENTRIES = 200_000
const MAX_DEPTH = 256
/** Names of one directory that are looked at concurrently. */
const CONCURRENCY = 16
/** Files that are read concurrently: each is in memory as a whole. */
const READERS = 4
/** Of a `.gitignore`. */
const MAX_RULES_BYTES = 1024 ** 2

/** What is left out where there is no `.gitignore`: what programs make and can make again. */
const GENERATED = readIgnoreRules(
  ['node_modules', '.venv', 'venv', '__pycache__', 'target', '.tox', '.mypy_cache', '.pytest_cache', '.gradle']
    .map((name) => `${name}/`)
    .join('\n'),
)

export type ReadOptions = {
  /** The entries of the last look, to compare with. */
  readonly known: ReadonlyMap<string, TreeEntry> | undefined
  /** Receives content that is not known, before the entry is in the tree. */
  readonly store: (content: Buffer) => Promise<void>
  /** Returns false for what the server hides, by real path. */
  readonly isShown: (realPath: string) => boolean
  /** Real paths of directories to leave out without a word: they are roots themselves. */
  readonly without: readonly string[]
  readonly signal: AbortSignal
  /** Shared by the roots of one snapshot. */
  readonly budget: { entries: number }
}

/** A tree that has too many entries, or cannot be read at all; the message says what to do. */
export class UnreadableTree extends Error {}

export async function readTree(path: string, options: ReadOptions): Promise<RootTree> {
  return await new TreeReader(options).read(path)
}

type Place = {
  readonly directory: OpenedPath
  readonly path: string
  readonly depth: number
  readonly rules: RuleChain
}
/** The rules of a directory and of those above. */
type RuleChain = readonly { readonly base: string; readonly rules: IgnoreRules }[]

class TreeReader {
  readonly #options: ReadOptions
  readonly #entries = new Map<string, TreeEntry>()
  readonly #leftOut: LeftOut[] = []
  #reading = 0
  readonly #waiting: (() => void)[] = []

  constructor(options: ReadOptions) {
    this.#options = options
  }

  async read(path: string): Promise<RootTree> {
    await using directory = await openDirectory(path)
    const own = { base: '', rules: await readRulesAt(directory, '.git/info/exclude') }
    const hasRules = await lstatAt(directory, Buffer.from('.gitignore')).then(
      (found) => found.isFile(),
      () => false,
    )
    const rules = hasRules ? [own] : [{ base: '', rules: GENERATED }, own]
    await this.#readDirectory({ directory, path: '', depth: 0, rules })
    const leftOut = this.#leftOut.sort((a, b) => (a.path < b.path ? -1 : 1))
    return { entries: this.#entries, leftOut }
  }

  async #readDirectory(place: Place): Promise<void> {
    this.#options.signal.throwIfAborted()
    const { directory, path, depth } = place
    const names = await namesIn(directory)
    const hasRules = names.some(({ name }) => name.equals(RULES_FILE))
    const rules = hasRules
      ? [...place.rules, { base: path, rules: await readRulesAt(directory, '.gitignore') }]
      : place.rules
    const here = { ...place, rules }
    const below: { name: Buffer; path: string }[] = []
    await forEach(names, CONCURRENCY, async (entry) => {
      const name = fromBytes(entry.name)
      if (name === '.git' || isTemporaryName(name)) return
      const inner = path === '' ? name : `${path}/${name}`
      if (this.#isIgnored(inner, entry.isDirectory(), rules)) this.#leave(inner, 'ignored')
      else if (entry.isDirectory()) below.push({ name: entry.name, path: inner })
      else await this.#readEntry(here, entry.name, inner)
    })
    // One after another: concurrently, each level would multiply the open descriptors.
    for (const each of below) {
      if (depth === MAX_DEPTH) this.#leave(each.path, 'unreadable')
      else await this.#orLeave(each.path, () => this.#descend(here, each.name, each.path))
    }
  }

  async #descend({ directory, depth, rules }: Place, name: Buffer, path: string): Promise<void> {
    await using inner = await openAt(entryIn(directory, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    if (this.#options.without.includes(inner.path)) return
    if (!this.#options.isShown(inner.path)) return this.#leave(path, 'hidden')
    const { mode } = await inner.handle.stat()
    this.#add(path, { kind: 'directory', mode: mode & MODE_BITS, blob: '', seen: undefined })
    await this.#readDirectory({ directory: inner, path, depth: depth + 1, rules })
  }

  async #readEntry({ directory }: Place, name: Buffer, path: string): Promise<void> {
    await this.#orLeave(path, async () => {
      const found = await lstatAt(directory, name)
      const known = this.#options.known?.get(path)
      if (!this.#options.isShown(`${directory.path}/${name.toString()}`)) return this.#leave(path, 'hidden')
      if (found.isSymbolicLink()) return await this.#readLink(directory, name, path)
      if (!found.isFile()) return this.#leave(path, 'special')
      if (found.size > MAX_FILE_BYTES) return this.#leave(path, 'too_large')
      const mode = found.mode & MODE_BITS
      if (known?.kind === 'file' && known.seen && isSameStat(known.seen, found))
        return this.#add(path, known.mode === mode ? known : { ...known, mode })
      await this.#inTurn(() => this.#readContent(directory, name, path, known))
    })
  }

  async #readLink(directory: OpenedPath, name: Buffer, path: string): Promise<void> {
    const target = await readlink(entryIn(directory, name), { encoding: 'buffer' })
    const blob = blobOf(target)
    if (this.#options.known?.get(path)?.blob !== blob) await this.#options.store(target)
    this.#add(path, { kind: 'symlink', mode: 0o777, blob, seen: undefined })
  }

  async #readContent(directory: OpenedPath, name: Buffer, path: string, known: TreeEntry | undefined): Promise<void> {
    // Do not block on a fifo that has replaced the file.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    await using file = await open(entryIn(directory, name), flags)
    const before = await file.stat()
    if (!before.isFile()) return this.#leave(path, 'special')
    const content = await readUpTo(file, MAX_FILE_BYTES + 1, before.size)
    if (content.length > MAX_FILE_BYTES) return this.#leave(path, 'too_large')
    const blob = blobOf(content)
    if (known?.blob !== blob) await this.#options.store(content)
    this.#add(path, { kind: 'file', mode: before.mode & MODE_BITS, blob, seen: settledStat(before, content.length) })
  }

  #add(path: string, entry: TreeEntry): void {
    if (--this.#options.budget.entries < 0)
      throw new UnreadableTree(`it has more than ${MAX_ENTRIES} files; list what is generated in a .gitignore`)
    this.#entries.set(path, entry)
  }

  #leave(path: string, reason: LeftOutReason): void {
    if (--this.#options.budget.entries < 0)
      throw new UnreadableTree(`it has more than ${MAX_ENTRIES} files; list what is generated in a .gitignore`)
    this.#leftOut.push({ path, reason })
  }

  #isIgnored(path: string, isDirectory: boolean, chain: RuleChain): boolean {
    for (let index = chain.length - 1; index >= 0; index--) {
      const link = chain[index]
      const ignores =
        link && matchIgnoreRules(link.rules, link.base === '' ? path : path.slice(link.base.length + 1), isDirectory)
      if (ignores !== undefined) return ignores
    }
    return false
  }

  async #orLeave(path: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return // removed or replaced meanwhile
      if (code === undefined || !UNREADABLE.has(code)) throw error
      this.#leave(path, 'unreadable')
    }
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    if (this.#reading >= READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#reading++
    try {
      await work()
    } finally {
      this.#reading--
      this.#waiting.shift()?.()
    }
  }
}

const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'ELOOP', 'EINVAL', 'ENXIO', 'ENODEV', 'EIO'])
const RULES_FILE = Buffer.from('.gitignore')

/** The name of a blob in git. */
export function blobOf(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

/** Times of some file systems have whole seconds only. */
const FINE_MS = 50
const COARSE_MS = 2000

/** Undefined if the file may change again without another time, or has changed while it was read. */
function settledStat({ size, mtimeMs, ctimeMs, ino }: Stats, length: number): FileStat | undefined {
  const resolution = mtimeMs % 1000 === 0 && ctimeMs % 1000 === 0 ? COARSE_MS : FINE_MS
  const isSettled = Math.max(mtimeMs, ctimeMs) < Date.now() - resolution
  return isSettled && size === length ? { size, mtimeMs, ctimeMs, ino } : undefined
}

async function readUpTo(file: Awaited<ReturnType<typeof open>>, limit: number, size: number): Promise<Buffer> {
  // One more byte than expected, so that the end is known from one read.
  let content = Buffer.allocUnsafe(Math.min(limit, size + 1))
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(content, length, content.length - length, length)
    length += bytesRead
    if (bytesRead === 0 || length === limit) return content.subarray(0, length)
    if (length < content.length) continue
    const larger = Buffer.allocUnsafe(Math.min(limit, content.length * 2))
    content.copy(larger)
    content = larger
  }
}

async function readRulesAt(directory: OpenedPath, name: string): Promise<IgnoreRules> {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    await using file = await open(within(directory, name), flags)
    if (!(await file.stat()).isFile()) return []
    return readIgnoreRules((await readUpTo(file, MAX_RULES_BYTES, 4096)).toString('latin1'))
  } catch {
    return []
  }
}

/** Returns the path as bytes, because a name need not be UTF-8. */
const entryIn = (place: OpenedPath, name: Buffer): Buffer => Buffer.concat([Buffer.from(within(place, '')), name])

// The functions with a callback cost half as much as those with a promise of their own, and are called for each file.
const lstatAt = (directory: OpenedPath, name: Buffer) =>
  new Promise<Stats>((resolve, reject) => {
    lstat(entryIn(directory, name), (error, found) => (error ? reject(error) : resolve(found)))
  })

const namesIn = (directory: OpenedPath) =>
  new Promise<Dirent<Buffer>[]>((resolve, reject) => {
    readdir(within(directory, '.'), { withFileTypes: true, encoding: 'buffer' }, (error, found) =>
      error ? reject(error) : resolve(found),
    )
  })

async function forEach<T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const workAll = async () => {
    for (const item of rest) await work(item)
  }
  const ends = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, workAll))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

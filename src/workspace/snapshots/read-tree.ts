/**
 * Reads the tree of a workdir: its entries, what is left out, and the content of what has changed since the last look.
 * Opens each name relative to its open directory and never follows links, so that nothing from outside is read, whatever a
 * name is swapped for meanwhile.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants } from 'node:fs'
import type { Stats } from 'node:fs'
import { open, readlink } from 'node:fs/promises'
import { isTemporaryName } from '../../files/jail/unfinished-files.ts'
import { codeOf } from '../../lib/error-code.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { OpenDirectory } from './open-directory.ts'
import { inDirectory, localDiskOf, lstatAll, namesIn, openInner, openRoot } from './open-directory.ts'
import type { RuleChain } from './rule-chain.ts'
import { bytesLeft, isIgnored, withRules } from './rule-chain.ts'
import type { FileStat, LeftOut, LeftOutReason, RootTree, TreeEntry } from './tree-entry.ts'
import { isSameStat, MODE_BITS, shownPath } from './tree-entry.ts'

/** Larger files are left out. */
const MAX_FILE_BYTES = 10 * 1024 ** 2
/** What one snapshot has at most; `pathBytes`: of all paths together, which are in memory and in one answer of git. */
export const MAX_TREE: TreeBudget = { entries: 200_000, pathBytes: 48 * 1024 ** 2 }
/** The system opens no longer path. */
const MAX_PATH_BYTES = 4096
const MAX_DEPTH = 256
/** Files that are read concurrently: each is in memory as a whole. */
const READERS = 4
/** What is left out where there is no `.gitignore`: what programs make and can make again. */
const GENERATED = withRules(
  [],
  '',
  ['node_modules', '.venv', 'venv', '__pycache__', 'target', '.tox', '.mypy_cache', '.pytest_cache', '.gradle']
    .map((name) => `${name}/`)
    .join('\n'),
)

export type TreeReading = {
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
  readonly budget: TreeBudget
}

/** What is left. */
type TreeBudget = { entries: number; pathBytes: number }

/** A tree that has too many entries, or cannot be read at all; the message says what to do. */
export class UnreadableTree extends Error {}

export async function readTree(path: string, options: TreeReading): Promise<RootTree> {
  return await new TreeReader(options).read(path)
}

/** A name in a directory, and its path from the root. */
type Named = { readonly name: string; readonly path: string }
type Place = {
  readonly directory: OpenDirectory
  readonly path: string
  readonly depth: number
  readonly rules: RuleChain
}

class TreeReader {
  readonly #options: TreeReading
  readonly #entries = new Map<string, TreeEntry>()
  readonly #leftOut: LeftOut[] = []
  readonly #slices = createSlices()

  constructor(options: TreeReading) {
    this.#options = options
  }

  async read(path: string): Promise<RootTree> {
    const fd = await openRoot(path)
    try {
      const directory = { fd, path, quick: this.#options.known && (await localDiskOf(fd)) }
      const [hasRules] = await lstatAll(directory, [{ name: RULES_FILE }], this.#slices)
      const hasOwn = hasRules !== undefined && !(hasRules instanceof Error) && hasRules.isFile()
      const rules = await withRepositoryRules(hasOwn ? [] : GENERATED, directory)
      await this.#readDirectory({ directory, path: '', depth: 0, rules })
    } finally {
      closeSync(fd)
    }
    const leftOut = this.#leftOut.toSorted((a, b) => (a.path < b.path ? -1 : 1))
    return { entries: this.#entries, leftOut }
  }

  async #readDirectory(place: Place): Promise<void> {
    this.#options.signal.throwIfAborted()
    await this.#slices.rest()
    const { directory, path, depth } = place
    const names = await namesIn(directory)
    const isRuled = names.some(({ name }) => name === RULES_FILE)
    const rules = isRuled ? await withRulesIn(place.rules, path, directory, RULES_FILE) : place.rules
    const { signal } = this.#options
    const below: Named[] = []
    const others: Named[] = []
    for (const entry of names) {
      const { name } = entry
      if (name === '.git' || isTemporaryName(name)) continue
      const inner = { name, path: path === '' ? name : `${path}/${name}` }
      const isDirectory = entry.isDirectory()
      if (inner.path.length > MAX_PATH_BYTES) this.#leave(inner.path, 'unreadable')
      // Git stores no such name, since on other disks it is the same one.
      else if (name.toLowerCase() === '.git') this.#leave(inner.path, 'special')
      else if (await isIgnored(rules, { path: inner.path, isDirectory }, { slices: this.#slices, signal }))
        this.#leave(inner.path, 'ignored')
      else (isDirectory ? below : others).push(inner)
    }
    await this.#readEntries(directory, others)
    // One after another: concurrently, each level would multiply the open descriptors.
    for (const each of below) {
      if (depth === MAX_DEPTH) this.#leave(each.path, 'unreadable')
      else await this.#orLeave(each.path, () => this.#descend({ ...place, rules }, each))
    }
  }

  async #descend({ directory, depth, rules }: Place, { name, path }: Named): Promise<void> {
    const { fd, mode, quick } = await openInner(directory, name)
    try {
      const inner = { fd, path: `${directory.path}/${shownPath(name)}`, quick }
      if (this.#options.without.includes(inner.path)) return
      if (!this.#options.isShown(inner.path)) return this.#leave(path, 'hidden')
      this.#add(path, { kind: 'directory', mode: mode & MODE_BITS, blob: '', seen: undefined })
      await this.#readDirectory({ directory: inner, path, depth: depth + 1, rules })
    } finally {
      // A directory is closed from memory, which costs less than to hand it to the thread pool.
      closeSync(fd)
    }
  }

  async #readEntries(directory: OpenDirectory, named: readonly Named[]): Promise<void> {
    const stats = await lstatAll(directory, named, this.#slices)
    const changed: { readonly entry: Named; readonly found: Stats }[] = []
    for (const [index, entry] of named.entries()) {
      const found = stats[index]
      if (found instanceof Error) await this.#orLeave(entry.path, () => Promise.reject(found))
      else if (found && !this.#knows(directory, entry, found)) changed.push({ entry, found })
    }
    await mapBounded(changed, READERS, ({ entry, found }) =>
      this.#orLeave(entry.path, () =>
        found.isSymbolicLink() ? this.#readLink(directory, entry) : this.#readContent(directory, entry),
      ),
    )
  }

  /** Returns true if the content need not be read. */
  #knows(directory: OpenDirectory, { name, path }: Named, found: Stats): boolean {
    if (!this.#options.isShown(`${directory.path}/${shownPath(name)}`)) this.#leave(path, 'hidden')
    else if (found.isSymbolicLink()) return false
    else if (!found.isFile()) this.#leave(path, 'special')
    else if (found.size > MAX_FILE_BYTES) this.#leave(path, 'too_large')
    else {
      const known = this.#options.known?.get(path)
      if (known?.kind !== 'file' || !known.seen || !isSameStat(known.seen, found)) return false
      const mode = found.mode & MODE_BITS
      this.#add(path, known.mode === mode ? known : { ...known, mode })
    }
    return true
  }

  async #readLink(directory: OpenDirectory, { name, path }: Named): Promise<void> {
    const target = await readlink(inDirectory(directory, name), { encoding: 'buffer' })
    const blob = blobOf(target)
    if (this.#options.known?.get(path)?.blob !== blob) await this.#options.store(target)
    this.#add(path, { kind: 'symlink', mode: 0o777, blob, seen: undefined })
  }

  async #readContent(directory: OpenDirectory, { name, path }: Named): Promise<void> {
    await using file = await open(inDirectory(directory, name), FILE)
    const before = await file.stat()
    if (!before.isFile()) return this.#leave(path, 'special')
    const content = await readUpTo(file, MAX_FILE_BYTES + 1, before.size)
    if (content.length > MAX_FILE_BYTES) return this.#leave(path, 'too_large')
    const blob = blobOf(content)
    if (this.#options.known?.get(path)?.blob !== blob) await this.#options.store(content)
    this.#add(path, { kind: 'file', mode: before.mode & MODE_BITS, blob, seen: settledStat(before, content.length) })
  }

  #add(path: string, entry: TreeEntry): void {
    this.#count(path)
    this.#entries.set(path, entry)
  }

  #leave(path: string, reason: LeftOutReason): void {
    this.#count(path)
    this.#leftOut.push({ path, reason })
  }

  #count(path: string): void {
    const { budget } = this.#options
    if (--budget.entries < 0)
      throw new UnreadableTree(`it has more than ${MAX_TREE.entries} files; list what is generated in a .gitignore`)
    if ((budget.pathBytes -= path.length) < 0)
      throw new UnreadableTree('its paths are too long to be kept; list what is generated in a .gitignore')
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
}

const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'ELOOP', 'EINVAL', 'ENXIO', 'ENODEV', 'EIO'])
const RULES_FILE = '.gitignore'
/** Does not block on a fifo that has replaced the file. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The name of a blob in git. */
function blobOf(content: Buffer): string {
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

/** Adds the rules of a file; those of no file, if it cannot be read. */
async function withRulesIn(chain: RuleChain, base: string, directory: OpenDirectory, name: string): Promise<RuleChain> {
  try {
    await using file = await open(inDirectory(directory, name), FILE)
    if (!(await file.stat()).isFile()) return chain
    const text = await readUpTo(file, bytesLeft(chain), 4096)
    return withRules(chain, base, text.toString('latin1'))
  } catch {
    return chain
  }
}

/** Adds the rules in `.git/info/exclude`, through no link: each of these names may lead to the outside. */
async function withRepositoryRules(chain: RuleChain, root: OpenDirectory): Promise<RuleChain> {
  const opened: number[] = []
  try {
    let place = root
    for (const name of ['.git', 'info']) {
      const { fd, quick } = await openInner(place, name)
      opened.push(fd)
      place = { fd, path: `${place.path}/${name}`, quick }
    }
    return await withRulesIn(chain, '', place, 'exclude')
  } catch {
    return chain
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

/**
 * Reads the tree of a workdir: its entries, what is left out, and the content of what has changed since the last look.
 * Opens each name relative to its open directory and never follows links, so that nothing from outside is read, whatever a
 * name is swapped for meanwhile.
 */
import type { Stats } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { isTemporaryName } from '../../files/jail/unfinished-files.ts'
import { codeOf } from '../../lib/error-code.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { objectName } from './git-objects.ts'
import type { OpenDirectory } from './open-directory.ts'
import { inDirectory, lstatAll, lstatSeen, namesIn, openInner, openRoot, unchangedInner } from './open-directory.ts'
import { readUpTo } from './read-up-to.ts'
import type { RuleChain } from './rule-chain.ts'
import { GENERATED, isIgnored, NO_RULES } from './rule-chain.ts'
import type { KnownRules } from './rule-files.ts'
import { RuleFiles } from './rule-files.ts'
import type { KnownTracked } from './tracked-files.ts'
import { TrackedFiles } from './tracked-files.ts'
import type { FileStat, LeftOut, LeftOutReason, RootTree, TreeEntry } from './tree-entry.ts'
import { Problem } from '../../contract/problem.ts'
import { isSameStat, MAX_FILE_BYTES, MODE_BITS, settledStat, shownPath } from './tree-entry.ts'

/** What one snapshot has at most; `pathBytes`: of all paths together, which are in memory and in one answer of git. */
export const MAX_TREE: TreeBudget = { entries: 200_000, pathBytes: 48 * 1024 ** 2 }
/** The system opens no longer path. */
const MAX_PATH_BYTES = 4096
const MAX_DEPTH = 256
/** Files that are read concurrently: each is in memory as a whole. */
const READERS = 4
/** What a smaller file is read into, again and again. */
const SCRATCH_BYTES = 64 * 1024
export type TreeReading = {
  /** Receives the entries; empty. */
  readonly entries: Map<string, TreeEntry>
  /** The entries of the last look, to compare with. */
  readonly knownEntries: ReadonlyMap<string, TreeEntry> | undefined
  /** What the last look of this process remembers. */
  readonly memory: TreeMemory | undefined
  /** Receives content that is not known and its name in git, before the entry is in the tree. */
  readonly store: (blob: string, content: Buffer) => Promise<void>
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

/** The tree, and what the next look need not read again. Rejects with the `Problem` `workdir_too_large`. */
export async function readTree(
  path: string,
  options: TreeReading,
): Promise<{ readonly tree: RootTree; readonly memory: TreeMemory }> {
  return await new TreeReader(options).read(path)
}

/** A name in a directory, and its path from the root. */
type NamedPath = {
  readonly name: string
  readonly path: string
  /** True if the list of the directory says so. */
  readonly isFile: boolean
  /** True if a rule names it, but it is tracked, or a file in it is. */
  readonly isIgnored?: boolean
}

/** What the names in a directory are. They are the same while its times and the rules are. */
type KnownNames = {
  readonly rules: RuleChain
  readonly hasRules: boolean
  readonly below: readonly NamedPath[]
  readonly others: readonly NamedPath[]
  /** The names that are left out for their names alone. */
  readonly leftOut: readonly LeftOut[]
}
type SeenNames = KnownNames & { readonly seen: FileStat }

export type TreeMemory = {
  /** The directories by path. */
  readonly directories: ReadonlyMap<string, SeenNames>
  readonly rules: ReadonlyMap<string, KnownRules>
  readonly tracked: KnownTracked
}

type Place = {
  readonly directory: OpenDirectory
  readonly path: string
  readonly depth: number
  /** True if only what is tracked is not ignored. */
  readonly isIgnored?: boolean | undefined
  /** The rules of the directories above. */
  readonly rules: RuleChain
  /** Undefined if they may change without another time. */
  readonly seen: FileStat | undefined
  /** What is known if nothing has changed. */
  readonly names: KnownNames | undefined
}

class TreeReader {
  readonly #began = Date.now()
  readonly #options: TreeReading
  readonly #leftOut: LeftOut[] = []
  readonly #slices = createSlices()
  readonly #scratch: Buffer[] = []
  readonly #directories = new Map<string, SeenNames>()
  readonly #rules: RuleFiles
  #tracked: TrackedFiles | undefined

  constructor(options: TreeReading) {
    this.#options = options
    this.#rules = new RuleFiles(options.memory?.rules, [NO_RULES, GENERATED])
  }

  async read(path: string) {
    using directory = await openRoot(path, this.#options.knownEntries !== undefined)
    const [hasRules] = await lstatAll(directory, [{ name: RULES_FILE }], this.#slices)
    const hasOwn = hasRules !== undefined && !(hasRules instanceof Error) && hasRules.isFile()
    const files = (this.#tracked = await TrackedFiles.open(directory, this.#options.memory?.tracked, this.#slices))
    const outer = this.#rules.withTracked(hasOwn ? NO_RULES : GENERATED, files.knownTracked.digest)
    const rules = await this.#rules.addRepository(outer, directory)
    await this.#readDirectory({ directory, path: '', depth: 0, rules, seen: undefined, names: undefined })
    const leftOut = this.#leftOut.toSorted((a, b) => (a.path < b.path ? -1 : 1))
    const memory = { directories: this.#directories, rules: this.#rules.knownRules, tracked: files.knownTracked }
    return { tree: { entries: this.#options.entries, leftOut }, memory }
  }

  async #readDirectory(place: Place): Promise<void> {
    this.#options.signal.throwIfAborted()
    await this.#slices.rest()
    const { path, depth, directory, seen } = place
    const names = await this.#namesOf(place)
    if (seen && this.#rules.isKnown(names.rules)) this.#directories.set(path, { ...names, seen })
    for (const omission of names.leftOut) this.#leave(omission.path, omission.reason)
    await this.#readEntries(directory, names.others)
    // One after another: concurrently, each level would multiply the open descriptors.
    for (const each of names.below) {
      if (depth === MAX_DEPTH) this.#leave(each.path, 'unreadable')
      else await this.#orLeave(each.path, () => this.#descend({ ...place, rules: names.rules }, each))
    }
  }

  async #namesOf({ directory, path, rules: outer, names: former, isIgnored: onlyTracked }: Place): Promise<KnownNames> {
    const entries = former ? undefined : await namesIn(directory)
    const hasRules = former?.hasRules ?? entries?.some(({ name }) => name === RULES_FILE) ?? false
    const rules = hasRules ? await this.#rules.add(outer, path, directory, RULES_FILE) : outer
    if (former?.rules === rules) return former
    const { signal } = this.#options
    const below: NamedPath[] = []
    const others: NamedPath[] = []
    const leftOut: LeftOut[] = []
    for (const entry of entries ?? (await namesIn(directory))) {
      const { name } = entry
      if (name === '.git' || isTemporaryName(name)) continue
      const inner = { name, path: path === '' ? name : `${path}/${name}`, isFile: entry.isFile() }
      const isDirectory = entry.isDirectory()
      const leave = (reason: LeftOutReason) => void leftOut.push({ path: inner.path, reason })
      if (inner.path.length > MAX_PATH_BYTES) leave('unreadable')
      // Git stores no such name, since on other disks it is the same one.
      else if (name.toLowerCase() === '.git') leave('special')
      else if (onlyTracked || (await isIgnored(rules, { ...inner, isDirectory }, { slices: this.#slices, signal }))) {
        const isTracked = await this.#tracked?.has(inner.path, isDirectory)
        if (isTracked) (isDirectory ? below : others).push({ ...inner, isIgnored: true })
        else leave('ignored')
      } else (isDirectory ? below : others).push(inner)
    }
    return { rules, hasRules, below, others, leftOut }
  }

  async #descend({ directory, depth, rules }: Place, { name, path, isIgnored: onlyTracked }: NamedPath): Promise<void> {
    const names = this.#options.memory?.directories.get(path)
    const unchangedDirectory = names && unchangedInner(directory, name, names.seen)
    const { inner, stats } = unchangedDirectory ?? (await openInner(directory, name))
    using innerDirectory = inner
    if (this.#options.without.includes(innerDirectory.path)) return
    if (!this.#options.isShown(innerDirectory.path)) return this.#leave(path, 'hidden')
    this.#add(path, { kind: 'directory', mode: stats.mode & MODE_BITS, blob: '', seen: undefined })
    const seenStats = unchangedDirectory ? names?.seen : settledStat(stats, stats.size, this.#began)
    const inside = { directory: innerDirectory, path, depth: depth + 1, isIgnored: onlyTracked, rules, seen: seenStats }
    await this.#readDirectory({ ...inside, names: unchangedDirectory && names })
  }

  async #readEntries(directory: OpenDirectory, namedPaths: readonly NamedPath[]): Promise<void> {
    const unknown: NamedPath[] = []
    const changedEntries: { readonly entry: NamedPath; readonly stats?: Stats }[] = []
    for (const [index, entry] of namedPaths.entries()) {
      if (index % BATCH === 0) await this.#slices.rest()
      const knownEntry = this.#options.knownEntries?.get(entry.path)
      const stats = knownEntry?.seen && lstatSeen(directory, entry.name, knownEntry.seen)
      if (stats && this.#knows(directory, entry, stats)) continue
      if (!knownEntry && entry.isFile && directory.quick === undefined) changedEntries.push({ entry })
      else unknown.push(entry)
    }
    if (unknown.length + changedEntries.length === 0) return
    const stats = await lstatAll(directory, unknown, this.#slices)
    for (const [index, entry] of unknown.entries()) {
      const each = stats[index]
      if (each instanceof Error) await this.#orLeave(entry.path, () => Promise.reject(each))
      else if (each && !this.#knows(directory, entry, each)) changedEntries.push({ entry, stats: each })
    }
    await mapBounded(changedEntries, READERS, ({ entry, stats }) =>
      this.#orLeave(entry.path, () =>
        stats?.isSymbolicLink() ? this.#readLink(directory, entry, stats) : this.#readContent(directory, entry),
      ),
    )
  }

  /** Returns true if the content need not be read. */
  #knows(directory: OpenDirectory, { name, path }: NamedPath, stats: Stats): boolean {
    if (!this.#isShown(directory, name)) this.#leave(path, 'hidden')
    else if (!stats.isFile() && !stats.isSymbolicLink()) this.#leave(path, 'special')
    else if (stats.size > MAX_FILE_BYTES) this.#leave(path, 'too_large')
    else {
      const knownEntry = this.#options.knownEntries?.get(path)
      const isLink = stats.isSymbolicLink()
      if (knownEntry?.kind !== (isLink ? 'symlink' : 'file') || !knownEntry.seen || !isSameStat(knownEntry.seen, stats))
        return false
      const mode = isLink ? knownEntry.mode : stats.mode & MODE_BITS
      this.#add(path, knownEntry.mode === mode ? knownEntry : { ...knownEntry, mode })
    }
    return true
  }

  async #readLink(directory: OpenDirectory, { name, path }: NamedPath, stats: Stats): Promise<void> {
    const target = await readlink(inDirectory(directory, name), { encoding: 'buffer' })
    const blob = objectName('blob', target)
    if (this.#options.knownEntries?.get(path)?.blob !== blob) await this.#options.store(blob, target)
    this.#add(path, { kind: 'symlink', mode: 0o777, blob, seen: settledStat(stats, target.length, this.#began) })
  }

  async #readContent(directory: OpenDirectory, { name, path }: NamedPath): Promise<void> {
    if (!this.#isShown(directory, name)) return this.#leave(path, 'hidden')
    const scratch = this.#scratch.pop() ?? Buffer.allocUnsafeSlow(SCRATCH_BYTES)
    let isTooLarge = false
    const mayRead = ({ size }: Stats) => !(isTooLarge = size > MAX_FILE_BYTES)
    const how = { limit: MAX_FILE_BYTES + 1, scratch, mayRead, isQuick: directory.quick !== undefined }
    await this.#slices.rest()
    const read = await readUpTo(inDirectory(directory, name), how)
    if (!read || read.content.length > MAX_FILE_BYTES)
      return this.#leave(path, read || isTooLarge ? 'too_large' : 'special')
    const { stats, content } = read
    const blob = objectName('blob', content)
    if (this.#options.knownEntries?.get(path)?.blob !== blob) await this.#options.store(blob, content)
    this.#scratch.push(scratch)
    this.#add(path, {
      kind: 'file',
      mode: stats.mode & MODE_BITS,
      blob,
      seen: settledStat(stats, content.length, this.#began),
    })
  }

  #isShown(directory: OpenDirectory, name: string): boolean {
    return this.#options.isShown(`${directory.path}/${shownPath(name)}`)
  }

  #add(path: string, entry: TreeEntry): void {
    this.#count(path)
    this.#options.entries.set(path, entry)
  }

  #leave(path: string, reason: LeftOutReason): void {
    this.#count(path)
    this.#leftOut.push({ path, reason })
  }

  #count(path: string): void {
    const { budget } = this.#options
    if (--budget.entries < 0) throw tooLarge(`has more than ${MAX_TREE.entries.toLocaleString('en')} files`)
    if ((budget.pathBytes -= path.length) < 0) throw tooLarge('has paths that are too long together')
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

/** `EAGAIN`: a program has a lease on it, see https://man7.org/linux/man-pages/man2/fcntl.2.html. */
const UNREADABLE: ReadonlySet<string> = new Set('EACCES EPERM ELOOP EINVAL ENXIO ENODEV EIO EAGAIN ESTALE'.split(' '))
const RULES_FILE = '.gitignore'
/** Names that are looked at before others get a turn. */
const BATCH = 64

const tooLarge = (why: string) =>
  new Problem('workdir_too_large', `No snapshot: the workdir ${why}. List what is generated in a .gitignore.`)

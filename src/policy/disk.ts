/** What the file system says about denied files: whether there are any below a directory, and whether git has them. */
import type { Dirent } from 'node:fs'
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../lib/error-code.ts'

/** Synchronous and bounded. In doubt, a file is there. For one decision: what was looked up is kept. */
export type Disk = {
  readonly exists: (path: string) => boolean
  /** Returns true if a path below the directory matches. */
  readonly holds: (
    directory: string,
    matches: (path: string, isLink: boolean) => boolean,
    skips: ReadonlySet<string>,
  ) => boolean
  /** Returns where a link leads: undefined if that is nowhere, null if it is not certain. */
  readonly targetOf: (link: string) => string | undefined | null
  /**
   * Returns true if a name in the directory begins with `-`, so that a program takes it as an option where `*` stands
   * for it.
   */
  readonly holdsOptions: (directory: string) => boolean
  /** The directory of the repository that a directory is in; undefined without one. */
  readonly topOf: (directory: string) => string | undefined
  /**
   * Returns true if git tracks a file whose path has one of these texts, in the repository that the directory is in.
   */
  readonly tracks: (directory: string, texts: readonly string[]) => boolean
  /** The patterns with which ignore files, from the directory up, make a search include what it would leave out. */
  readonly included: (directory: string, more: readonly string[]) => readonly string[]
}

/** Entries that are looked at. */
const MAX_ENTRIES = 2000
const MAX_INDEX_BYTES = 8 * 1024 * 1024
const MAX_IGNORE_BYTES = 64 * 1024
/** What all ignore files together may have: some 50 ms. */
const MAX_ALL_IGNORE_BYTES = 1024 * 1024

/** A rule cannot be compared with these: they stand for anything. */
const ANYTHING = ['*']

/** What all rules together may search in indexes of git: some 50 ms. */
const MAX_SEARCHED_BYTES = 256 * 1024 * 1024
/** Entries of directories that are kept. */
const MAX_KEPT_ENTRIES = 20_000

/** Each command of a line is compared with each rule: without what is kept, one decision looks a file up 100,000 times. */
export function createDisk(): Disk {
  const isThere = once(exists)
  const indexes = once((directory) => indexOf(directory, isThere))
  let remainingIgnoreBytes = MAX_ALL_IGNORE_BYTES
  const ignores = once((file) => includedBy(file, (size) => (remainingIgnoreBytes -= size) >= 0))
  const includedFiles = once((directory) => ignoreFilesFrom(directory).flatMap(ignores))
  const entries = new Map<string, Dirent[] | undefined>()
  let keptCount = 0
  let remainingBytes = MAX_SEARCHED_BYTES
  const list = (directory: string) => {
    if (entries.has(directory)) return entries.get(directory)
    const listedEntries = entriesOf(directory)
    keptCount += 1 + (listedEntries?.length ?? 0)
    if (keptCount <= MAX_KEPT_ENTRIES) entries.set(directory, listedEntries)
    return listedEntries
  }
  const search = (index: Buffer, text: string) => (remainingBytes -= index.length) < 0 || index.includes(text)
  const trackedPaths = new Map<string, boolean>()
  return {
    exists: isThere,
    holds: (directory, matches, skips) => holds(directory, { matches, skips, list }),
    targetOf,
    holdsOptions: (directory) => list(directory)?.some(({ name }) => name.startsWith('-')) ?? true,
    tracks(directory, texts) {
      const key = [directory, ...texts].join('\0\0')
      let isTracked = trackedPaths.get(key)
      if (isTracked === undefined) {
        const index = indexes(directory)
        isTracked = typeof index === 'boolean' ? index : texts.some((text) => search(index, text))
        trackedPaths.set(key, isTracked)
      }
      return isTracked
    },
    topOf: (directory) => rootOf(directory, isThere),
    included: (directory, more) => [...more.flatMap(ignores), ...includedFiles(directory)],
  }
}

function once<T>(look: (path: string) => T): (path: string) => T {
  const knownResults = new Map<string, { readonly result: T }>()
  return (path) => {
    let foundResult = knownResults.get(path)
    if (!foundResult) knownResults.set(path, (foundResult = { result: look(path) }))
    return foundResult.result
  }
}

/** Stands for bytes that are no UTF-8: a path with it may be another one on the disk. */
const UNKNOWN_BYTES = '\uFFFD'

function exists(path: string): boolean {
  try {
    return path.includes(UNKNOWN_BYTES) || lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return true
  }
}

type Search = {
  readonly matches: (path: string, isLink: boolean) => boolean
  readonly skips: ReadonlySet<string>
  readonly list: (directory: string) => readonly Dirent[] | undefined
}

function holds(directory: string, { matches, skips, list }: Search): boolean {
  const remainingDirectories = [directory]
  let count = 0
  for (let at = remainingDirectories.pop(); at !== undefined; at = remainingDirectories.pop()) {
    const entries = list(at)
    if (!entries) return true
    for (const entry of entries) {
      if ((count += 1) > MAX_ENTRIES || entry.name.includes(UNKNOWN_BYTES)) return true
      const path = join(at, entry.name)
      if (matches(path, entry.isSymbolicLink())) return true
      if (entry.isDirectory() && !skips.has(entry.name)) remainingDirectories.push(path)
    }
  }
  return false
}

function targetOf(link: string): string | undefined | null {
  try {
    const target = realpathSync(link)
    return target.includes(UNKNOWN_BYTES) ? null : target
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? undefined : null
  }
}

/** Undefined if it cannot be read. */
function entriesOf(directory: string): Dirent[] | undefined {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    // Another error says nothing: programs reach a path that is too long for one call.
    return codeOf(error) === 'ENOENT' && !directory.includes(UNKNOWN_BYTES) ? [] : undefined
  }
}

/**
 * Returns what git tracks in the repository that the directory is in; a boolean if that needs no look, or cannot be
 * read.
 */
function indexOf(directory: string, isThere: Disk['exists']): Buffer | boolean {
  const root = rootOf(directory, isThere)
  // There, `git diff` compares any files.
  if (root === undefined) return true
  try {
    const path = join(root, '.git/index')
    const stats = statSync(path, { throwIfNoEntry: false })
    // A worktree, or a submodule, has its index elsewhere.
    if (!stats) return !statSync(join(root, '.git')).isDirectory()
    if (stats.size > MAX_INDEX_BYTES) return true
    const index = readFileSync(path)
    // Version 4 shortens names by those before them.
    return index.readUInt32BE(4) > 3 || index
  } catch {
    return true
  }
}

function rootOf(directory: string, isThere: Disk['exists']): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    if (isThere(join(at, '.git'))) return at
    if (at === '/' || at === '.') return undefined
  }
}

const IGNORE_FILES = ['.gitignore', '.ignore', '.rgignore', '.git/info/exclude']

function ignoreFilesFrom(directory: string): readonly string[] {
  const files: string[] = []
  for (let at = directory; ; at = dirname(at)) {
    files.push(...IGNORE_FILES.map((name) => join(at, name)))
    if (at === '/' || at === '.') return files
  }
}

function includedBy(file: string, mayRead: (size: number) => boolean): readonly string[] {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (!stats) return []
    if (!stats.isFile() || stats.size > MAX_IGNORE_BYTES || !mayRead(stats.size)) return ANYTHING
    const lines = readFileSync(file, 'utf8')
      .replace(/^\uFEFF/, '')
      .split('\n')
    return lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1).trim())
  } catch {
    return ANYTHING
  }
}

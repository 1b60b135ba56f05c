/** What the file system says about denied files: whether there are any below a directory, and whether git has them. */
import type { Dirent } from 'node:fs'
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Synchronous and bounded. In doubt, a file is there. */
export type Disk = {
  readonly exists: (path: string) => boolean
  /** Whether a path below the directory matches. */
  readonly holds: (directory: string, matches: (path: string) => boolean, skips: ReadonlySet<string>) => boolean
  /** Whether git tracks a file whose path has one of these texts, in the repository that the directory is in. */
  readonly tracks: (directory: string, texts: readonly string[]) => boolean
  /** The patterns with which ignore files, from the directory up, make a search include what it would leave out. */
  readonly included: (directory: string, more: readonly string[]) => readonly string[]
}

/** Entries that are looked at. */
const MAX_ENTRIES = 2000
const MAX_INDEX_BYTES = 8 * 1024 * 1024
const MAX_IGNORE_BYTES = 64 * 1024

/** A rule cannot be compared with these: they stand for anything. */
const ANYTHING = ['*']

export const disk: Disk = { exists, holds, tracks, included }

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return true
  }
}

function holds(directory: string, matches: (path: string) => boolean, skips: ReadonlySet<string>): boolean {
  const left = [directory]
  let count = 0
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    const entries = entriesOf(at)
    if (!entries) return true
    for (const entry of entries) {
      if ((count += 1) > MAX_ENTRIES) return true
      const path = join(at, entry.name)
      if (matches(path)) return true
      if (entry.isDirectory() && !skips.has(entry.name)) left.push(path)
    }
  }
  return false
}

/** Undefined if it cannot be read. */
function entriesOf(directory: string): Dirent[] | undefined {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return existsSync(directory) ? undefined : []
  }
}

function tracks(directory: string, texts: readonly string[]): boolean {
  const root = rootOf(directory)
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
    return index.readUInt32BE(4) > 3 || texts.some((text) => index.includes(text))
  } catch {
    return true
  }
}

function rootOf(directory: string): string | undefined {
  for (let at = directory; ; at = dirname(at)) {
    if (exists(join(at, '.git'))) return at
    if (at === '/' || at === '.') return undefined
  }
}

const IGNORE_FILES = ['.gitignore', '.ignore', '.rgignore', '.git/info/exclude']

function included(directory: string, more: readonly string[]): readonly string[] {
  const files: string[] = [...more]
  for (let at = directory; ; at = dirname(at)) {
    files.push(...IGNORE_FILES.map((name) => join(at, name)))
    if (at === '/' || at === '.') break
  }
  return files.flatMap(includedBy)
}

export function includedBy(file: string): readonly string[] {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (!stats) return []
    if (!stats.isFile() || stats.size > MAX_IGNORE_BYTES) return ANYTHING
    const lines = readFileSync(file, 'utf8').split('\n')
    return lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1).trim())
  } catch {
    return ANYTHING
  }
}

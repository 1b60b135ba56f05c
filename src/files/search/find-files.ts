/** Finds files of a directory by a pattern for their paths. */
import { createSlices } from '../../lib/time-slices.ts'
import { lookAt } from '../trees/list-files.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import type { Jail } from '../jail/path-jail.ts'
import { walk } from '../trees/tree-walk.ts'
import { compileGlob } from './glob.ts'

export type FileSearch = {
  readonly pattern: string
  /** Names of directories that are left out. */
  readonly without: readonly string[]
  readonly signal: AbortSignal
}

/** `path` is from the directory on. */
export type NamedFile = { readonly path: string; readonly mtimeMs: number }

export type NamedFiles = {
  readonly files: readonly NamedFile[]
  /** The search was ended before it had seen all. */
  readonly isCut: boolean
}

/** More files that match are not looked at. */
const MAX_FILES = 20_000

/** Returns the files, those changed last first. Links are not followed and not found. */
export async function findFiles(
  jail: Jail,
  directory: OpenedPath,
  { pattern, without, signal }: FileSearch,
): Promise<NamedFiles> {
  const patterns = expandBraces(pattern).map(compileGlob)
  const slices = createSlices()
  const files: NamedFile[] = []
  const enters = (name: Buffer) => !without.includes(name.toString())
  for await (const walkEntry of walk(jail, directory, { recursive: true, enters, isOver: () => signal.aborted })) {
    await slices.rest()
    if (signal.aborted || files.length === MAX_FILES) return { files: files.toSorted(newestFirst), isCut: true }
    if (walkEntry.kind !== 'file') continue
    const path = walkEntry.names.map(String).join('/')
    if (!patterns.some((matches) => matches(path))) continue
    await using entry = await lookAt(jail, walkEntry)
    if (entry?.kind === 'file') files.push({ path, mtimeMs: Number(entry.stats.mtimeMs) })
  }
  return { files: files.toSorted(newestFirst), isCut: signal.aborted }
}

const newestFirst = (a: NamedFile, b: NamedFile) => b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1)

/** Alternatives of a pattern at most; more braces stay as they are. */
const MAX_ALTERNATIVES = 64

/** `*.{ts,tsx}` -> `*.ts`, `*.tsx`. */
function expandBraces(pattern: string): string[] {
  let patterns = [pattern]
  for (;;) {
    const expandedPatterns = patterns.flatMap(expandInnermost)
    if (expandedPatterns.length === patterns.length || expandedPatterns.length > MAX_ALTERNATIVES) return patterns
    patterns = expandedPatterns
  }
}

/** One pair of braces that has no others in it, and at least one comma. */
function expandInnermost(pattern: string): string[] {
  const match = /\{([^{},]*(?:,[^{},]*){1,1000})\}/.exec(pattern)
  if (!match) return [pattern]
  const [whole, inner = ''] = match
  const [before, after] = [pattern.slice(0, match.index), pattern.slice(match.index + whole.length)]
  return inner.split(',').map((part) => before + part + after)
}

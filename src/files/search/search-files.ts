/**
 * Searches a workdir by name and by content. Every result was read through the jail, whichever engine found it. Both
 * engines are needed: ripgrep works by name, and names can be swapped for links, so our own search verifies its
 * results; and our own search alone, which opens each file inside the jail, takes 4.8 s for 5,000 files of 4 KB, with
 * ripgrep 0.15 s.
 */
import type { FileMatch, FileMatches, SearchFiles } from '../../contract/files.ts'
import { Problem } from '../../contract/problem.ts'
import { indexOfText } from '../../lib/text/find-text.ts'
import { compileGlob } from './glob.ts'
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { Needle } from './find-lines.ts'
import { findLines, needleOf } from './find-lines.ts'
import type { JailPath } from '../jail/jail-path.ts'
import { lookAt, pathOfMet } from '../trees/list-files.ts'
import type { JailEntry, Jail } from '../jail/path-jail.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import { leftOut, look, openDirectoryIn, openToRead } from '../jail/path-jail.ts'
import { readRange } from '../jail/read-file.ts'
import { MAX_RIPGREP_FILE_BYTES, filesWith, largeFiles } from './ripgrep.ts'
import { walk } from '../trees/tree-walk.ts'
import { isTemporaryName } from '../jail/unfinished-files.ts'

export type SearchDeps = {
  /** Path of the program; undefined if it is not installed. */
  readonly ripgrep: string | undefined
  readonly redact: (text: string) => string | Promise<string>
  /** Returns true if our own search enters directories with that name. Default: all. */
  readonly enters?: (name: Buffer) => boolean
  /** Aborted at the time limit. */
  readonly signal: AbortSignal
}

/** Characters of a line that are shown. */
const MAX_SHOWN = 500
/** How many of these are before the match. */
const SHOWN_BEFORE = 100

/** Large files are searched last, so that they do not delay the others; more of them are skipped. */
const MAX_LARGE_FILES = 1000

/** Maximum number of files named that were skipped for lack of time. */
const MAX_SKIPPED = 20

/** One search: its request and its state. */
type Search = SearchDeps & {
  readonly jail: Jail
  readonly base: JailPath
  readonly fits: (path: string) => boolean
  readonly slices: Slices
  readonly skipped: string[]
  /** True if something was left out that the items do not show. */
  isCut: boolean
}

/** Results in the order of the walk, which is also that of a listing; with `content`, files above 16 MiB come last. */
export async function searchFiles(
  jail: Jail,
  path: JailPath,
  query: SearchFiles,
  deps: SearchDeps,
): Promise<FileMatches> {
  if (query.q === undefined && query.content === undefined)
    throw new Problem('invalid_request', 'Send q or content, or both: what to search for.')
  await using directory = await openDirectoryIn(jail, path.names)
  const fits = nameTest(query.q)
  const search: Search = { ...deps, jail, base: path, fits, slices: createSlices(), skipped: [], isCut: false }
  const items: FileMatch[] = []
  const matches =
    query.content === undefined
      ? byName(search, directory)
      : byContent(search, directory, needleOf(query.content, query.ignore_case))
  for await (const match of matches) {
    if (items.length === query.limit) return { items, truncated: true }
    items.push(match)
  }
  const { isCut, skipped } = search
  const isTruncated = isCut || deps.signal.aborted
  return { items, truncated: isTruncated, ...(skipped.length > 0 && { skipped: skipped.slice(0, MAX_SKIPPED) }) }
}

/** Returns true if there is time for another step; yields to other work after its time slice. */
async function mayContinue({ slices, signal }: Search): Promise<boolean> {
  await slices.rest()
  return !signal.aborted
}

async function* byName(search: Search, directory: OpenedPath): AsyncGenerator<FileMatch> {
  const { jail, base, fits, signal } = search
  for await (const entry of walk(jail, directory, { recursive: true, isOver: () => signal.aborted })) {
    if (!(await mayContinue(search))) return
    const path = pathOfMet(base, entry)
    if (fits(relative(path, base))) yield { path, type: entry.kind }
  }
}

async function* byContent(search: Search, directory: OpenedPath, needle: Needle): AsyncGenerator<FileMatch> {
  const large: Candidate[] = []
  for await (const candidate of search.ripgrep
    ? foundByRipgrep(search, search.ripgrep, directory, needle)
    : allFiles(search, directory)) {
    const path = await searchable(search, candidate)
    if (path === undefined) continue
    await using entry = await candidate.open()
    if (entry?.kind !== 'file') continue
    if (entry.stats.size <= MAX_RIPGREP_FILE_BYTES) yield* linesOf(search, entry, path, needle)
    else if (!search.ripgrep) keepForTheEnd(search, large, foundCandidate(search, candidate.names))
  }
  if (search.ripgrep) {
    const foundFiles = largeFiles({ directory, signal: search.signal, onCutShort: () => (search.isCut = true) })
    for await (const names of foundFiles) keepForTheEnd(search, large, foundCandidate(search, names))
    large.sort((a, b) => compareNames(a.names, b.names))
  }
  for (const candidate of large) yield* linesOfLarge(search, candidate, needle)
}

async function searchable(search: Search, { names }: Candidate): Promise<string | undefined> {
  const path = pathOfMet(search.base, { names })
  return (await mayContinue(search)) && search.fits(relative(path, search.base)) ? path : undefined
}

function keepForTheEnd(search: Search, large: Candidate[], candidate: Candidate): void {
  if (large.length < MAX_LARGE_FILES) large.push(candidate)
  else search.isCut = true
}

async function* linesOfLarge(search: Search, candidate: Candidate, needle: Needle): AsyncGenerator<FileMatch> {
  const path = pathOfMet(search.base, candidate)
  if (isTemporary(candidate.names) || !search.fits(relative(path, search.base))) return
  await using entry = search.signal.aborted ? undefined : await candidate.open()
  if (entry?.kind === 'file') yield* linesOf(search, entry, path, needle)
  if (search.signal.aborted) search.skipped.push(path)
}

const isTemporary = (names: readonly Buffer[]) => isTemporaryName(String(names.at(-1)))

type Candidate = { readonly names: readonly Buffer[]; readonly open: () => Promise<JailEntry | undefined> }

async function* allFiles({ jail, signal, enters }: Search, directory: OpenedPath): AsyncGenerator<Candidate> {
  const options = { recursive: true, isOver: () => signal.aborted, ...(enters && { enters }) }
  for await (const entry of walk(jail, directory, options)) {
    if (signal.aborted) return
    // Open it by its directory, which is open until the next entry is requested; a large file is opened later, and so
    // by its names.
    if (entry.kind === 'file') yield { names: entry.names, open: () => lookAt(jail, entry) }
  }
}

async function* foundByRipgrep(
  search: Search,
  ripgrep: string,
  directory: OpenedPath,
  needle: Needle,
): AsyncGenerator<Candidate> {
  const query = { directory, signal: search.signal, onCutShort: () => (search.isCut = true) }
  for await (const names of filesWith(ripgrep, needle, query)) {
    if (!isTemporary(names)) yield foundCandidate(search, names)
  }
}

function foundCandidate({ jail, base }: Search, names: readonly Buffer[]): Candidate {
  // oxlint-disable-next-line typescript/no-non-null-assertion -- ripgrep prints no empty path
  return { names, open: () => openAnew(jail, [...base.names, ...names.slice(0, -1)], names.at(-1)!) }
}

/** Compares by the order of the walk: a directory comes before its content. */
function compareNames(a: readonly Buffer[], b: readonly Buffer[]): number {
  const at = a.findIndex((name, place) => b[place] === undefined || !name.equals(b[place]))
  if (at < 0) return a.length - b.length
  // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
  return b[at] === undefined ? 1 : Buffer.compare(a[at]!, b[at])
}

/** Returns undefined if it is not in the workdir, or not accessible to clients, whatever ripgrep saw there. */
async function openAnew(
  jail: Jail,
  parent: readonly (string | Buffer)[],
  name: Buffer,
): Promise<JailEntry | undefined> {
  try {
    await using directory = await openDirectoryIn(jail, parent)
    return await look(jail, directory, name)
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

async function* linesOf(search: Search, entry: JailEntry, path: string, needle: Needle): AsyncGenerator<FileMatch> {
  const { jail, redact } = search
  const file = await openToRead(jail, entry).catch(leftOut)
  if (!file) return
  try {
    for await (const { line, bytes } of findLines(inTime(search, readRange(jail, file, 0, Infinity)), needle)) {
      const text = bytes && withoutReturn(bytes.toString())
      yield { path, type: 'file', line, ...(text !== undefined && { text: shownPart(await redact(text), needle) }) }
      if (!(await mayContinue(search))) return
    }
  } finally {
    await file.close()
  }
}

/** A file can be endless: stop reading when the time is over. */
async function* inTime(search: Search, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    if (!(await mayContinue(search))) return
    yield piece
  }
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line)

/** Returns the part of a long line around the match. */
function shownPart(text: string, { bytes, ignoreCase }: Needle): string {
  if (text.length <= MAX_SHOWN) return text
  const at = indexOfText(ignoreCase ? text.toLowerCase() : text, bytes.toString())
  const start = Math.max(0, Math.min(at - SHOWN_BEFORE, text.length - MAX_SHOWN))
  const part = text.slice(start, start + MAX_SHOWN)
  return `${start > 0 ? '…' : ''}${part}${start + MAX_SHOWN < text.length ? '…' : ''}`
}

function nameTest(q: string | undefined): (path: string) => boolean {
  if (q === undefined) return () => true
  if (/[*?[]/.test(q)) return compileGlob(q)
  const part = q.toLowerCase()
  return (path) =>
    path
      .slice(path.lastIndexOf('/') + 1)
      .toLowerCase()
      .includes(part)
}

const relative = (path: string, { text }: JailPath) => (text ? path.slice(text.length + 1) : path)

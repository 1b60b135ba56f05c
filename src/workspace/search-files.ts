/** Searches a workdir by name and by content. What is shown was read through the jail, whoever found it. */
import type { FileMatch, FileMatches, SearchFiles } from '../contract/files.ts'
import { Problem } from '../contract/problem.ts'
import { matchesGlob } from '../lib/glob.ts'
import type { Needle } from './find-lines.ts'
import { findLines, needleOf } from './find-lines.ts'
import type { JailPath } from './jail-path.ts'
import { lookAt, pathOfMet } from './list-files.ts'
import type { Entry, Jail } from './path-jail.ts'
import type { Place } from './open-place.ts'
import { look, openDirectoryIn, openToRead } from './path-jail.ts'
import { readRange } from './read-file.ts'
import { filesWith } from './ripgrep.ts'
import { walk } from './tree-walk.ts'
import { isTemporaryName } from './unfinished-files.ts'

export type SearchDeps = {
  /** The program; undefined where there is none. */
  readonly ripgrep: string | undefined
  readonly redact: (text: string) => string
  /** When it gives up. */
  readonly signal: AbortSignal
}

/** Characters of a line that are shown. */
const MAX_SHOWN = 500
/** Of those, how many before what was found. */
const SHOWN_BEFORE = 100

/** In the order of the walk, which is also that of a listing. */
export async function searchFiles(
  jail: Jail,
  path: JailPath,
  query: SearchFiles,
  deps: SearchDeps,
): Promise<FileMatches> {
  if (query.q === undefined && query.content === undefined)
    throw new Problem('invalid_request', 'Send q or content, or both: what to search for.')
  await using directory = await openDirectoryIn(jail, path.names)
  const items: FileMatch[] = []
  const matches =
    query.content === undefined ? byName(jail, directory, path, query) : byContent(jail, directory, path, query, deps)
  for await (const match of matches) {
    if (items.length === query.limit) return { items, truncated: true }
    items.push(match)
    if (deps.signal.aborted) break
  }
  return { items, truncated: deps.signal.aborted }
}

async function* byName(
  jail: Jail,
  directory: Place,
  base: JailPath,
  { q = '' }: SearchFiles,
): AsyncGenerator<FileMatch> {
  const fits = nameTest(q)
  for await (const met of walk(jail, directory, { recursive: true })) {
    const path = pathOfMet(base, met)
    if (fits(relative(path, base))) yield { path, type: met.kind }
  }
}

async function* byContent(
  jail: Jail,
  directory: Place,
  base: JailPath,
  { q, content, ignore_case }: SearchFiles,
  deps: SearchDeps,
): AsyncGenerator<FileMatch> {
  const fits = nameTest(q)
  const needle = needleOf(content!, ignore_case)
  const { ripgrep, signal } = deps
  const candidates = ripgrep
    ? foundByRipgrep(jail, base, filesWith(ripgrep, directory, needle, signal))
    : allFiles(jail, directory)
  for await (const { names, open } of candidates) {
    if (signal.aborted) return
    const path = pathOfMet(base, { names })
    if (!fits(relative(path, base))) continue
    await using entry = await open()
    if (entry?.kind === 'file') yield* linesOf(jail, entry, path, needle, deps)
  }
}

type Candidate = { readonly names: readonly Buffer[]; readonly open: () => Promise<Entry | undefined> }

async function* allFiles(jail: Jail, directory: Place): AsyncGenerator<Candidate> {
  for await (const met of walk(jail, directory, { recursive: true })) {
    if (met.kind === 'file') yield { names: met.names, open: () => lookAt(jail, met) }
  }
}

async function* foundByRipgrep(
  jail: Jail,
  base: JailPath,
  found: AsyncIterable<readonly Buffer[]>,
): AsyncGenerator<Candidate> {
  for await (const names of found) {
    const name = names.at(-1)!
    if (isTemporaryName(name.toString())) continue
    yield { names, open: () => openAnew(jail, [...base.names, ...names.slice(0, -1)], name) }
  }
}

/** Undefined for what is not in the workdir, or not for clients, whatever ripgrep saw there. */
async function openAnew(jail: Jail, parent: readonly (string | Buffer)[], name: Buffer): Promise<Entry | undefined> {
  try {
    await using directory = await openDirectoryIn(jail, parent)
    return await look(jail, directory, name)
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

async function* linesOf(
  jail: Jail,
  entry: Entry,
  path: string,
  needle: Needle,
  { redact, signal }: SearchDeps,
): AsyncGenerator<FileMatch> {
  const file = await openToRead(jail, entry).catch(() => undefined)
  if (!file) return
  try {
    for await (const { line, bytes } of findLines(readRange(jail, file, 0, Infinity), needle)) {
      yield {
        path,
        type: 'file',
        line,
        ...(bytes && { text: shownPart(redact(bytes.toString().replace(/\r$/, '')), needle) }),
      }
      if (signal.aborted) return
    }
  } finally {
    await file.close()
  }
}

/** Of a long line, what is around the text. */
function shownPart(text: string, { bytes, ignoreCase }: Needle): string {
  if (text.length <= MAX_SHOWN) return text
  const at = (ignoreCase ? text.toLowerCase() : text).indexOf(bytes.toString())
  const start = Math.max(0, Math.min(at - SHOWN_BEFORE, text.length - MAX_SHOWN))
  const part = text.slice(start, start + MAX_SHOWN)
  return `${start > 0 ? '…' : ''}${part}${start + MAX_SHOWN < text.length ? '…' : ''}`
}

function nameTest(q: string | undefined): (path: string) => boolean {
  if (q === undefined) return () => true
  if (/[*?[]/.test(q)) return (path) => matchesGlob(path, q)
  const part = q.toLowerCase()
  return (path) =>
    path
      .slice(path.lastIndexOf('/') + 1)
      .toLowerCase()
      .includes(part)
}

const relative = (path: string, { text }: JailPath) => (text ? path.slice(text.length + 1) : path)

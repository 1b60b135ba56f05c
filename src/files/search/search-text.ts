/**
 * Searches the files of a directory for a regular expression. ripgrep says by name which files may match; each is then
 * opened inside the jail, and ripgrep matches it again by its open descriptor. What is shown was thus read through the jail.
 */
import { z } from 'zod'
import { Problem } from '../../contract/problem.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import type { Jail } from '../jail/path-jail.ts'
import { look, openDirectoryIn, openToRead } from '../jail/path-jail.ts'
import { isTemporaryName } from '../jail/unfinished-files.ts'
import type { ContextLines, RegexQuery } from './ripgrep.ts'
import { descriptorPath, filesMatching, largeFiles, matchesIn } from './ripgrep.ts'

export type TextSearch = {
  readonly ripgrep: string
  readonly query: RegexQuery
  readonly context: ContextLines
  /** Lines of a file that are kept; the others are only counted. */
  readonly keptLines: number
  readonly signal: AbortSignal
  /** Called if something was left out: the search was ended early, or has found too much. */
  readonly onCut: () => void
}

export type TextLine = { readonly line: number; readonly text: string; readonly isMatch: boolean }

export type FileWithText = {
  /** The path from the directory on. */
  readonly path: string
  readonly mtimeMs: number
  readonly matches: number
  readonly lines: readonly TextLine[]
}

/** Files that are matched by one process. */
const BATCH = 64

/** More files that may match are not looked at. */
const MAX_FILES = 10_000

/** Yields the matches in the order of the paths. Ends early when the signal is aborted. */
export async function* searchText(jail: Jail, directory: OpenedPath, search: TextSearch): AsyncGenerator<FileWithText> {
  const { ripgrep, query, signal, onCut } = search
  let batch: (readonly Buffer[])[] = []
  let count = 0
  for await (const names of filesMatching(ripgrep, query, { directory, signal, onCutShort: onCut })) {
    if (isTemporaryName(String(names.at(-1)))) continue
    if (++count > MAX_FILES) {
      onCut()
      break
    }
    batch.push(names)
    if (batch.length < BATCH) continue
    yield* matchBatch(jail, batch, search)
    batch = []
  }
  yield* matchBatch(jail, batch, search)
}

/** The one file of that name in the directory, if it matches. */
export async function* searchOneFile(jail: Jail, name: string, search: TextSearch): AsyncGenerator<FileWithText> {
  yield* matchBatch(jail, [[Buffer.from(name)]], search)
}

/** Paths of files that are too large to be searched, without those in the directories that are left out. */
export async function* unsearchedPaths(
  directory: OpenedPath,
  { query, signal, onCut }: Pick<TextSearch, 'query' | 'signal' | 'onCut'>,
): AsyncGenerator<string> {
  for await (const names of largeFiles({ directory, signal, onCutShort: onCut })) {
    const path = names.map(String)
    if (!path.some((name) => query.without.includes(name))) yield path.join('/')
  }
}

type OpenText = {
  readonly path: string
  readonly mtimeMs: number
  readonly file: { readonly fd: number; close(): Promise<void> }
}

async function* matchBatch(
  jail: Jail,
  batch: readonly (readonly Buffer[])[],
  search: TextSearch,
): AsyncGenerator<FileWithText> {
  const openTexts: OpenText[] = []
  try {
    for (const names of batch) {
      const openText = search.signal.aborted ? undefined : await open(jail, names)
      if (openText) openTexts.push(openText)
    }
    if (openTexts.length > 0) yield* matchOpened(openTexts, search)
  } finally {
    await Promise.all(openTexts.map(({ file }) => file.close()))
  }
}

/** Undefined for what is not in the jail, or is not a file. */
async function open(jail: Jail, names: readonly Buffer[]): Promise<OpenText | undefined> {
  try {
    await using directory = await openDirectoryIn(jail, names.slice(0, -1))
    await using entry = await look(jail, directory, names.at(-1) ?? '.')
    if (entry?.kind !== 'file') return undefined
    const file = await openToRead(jail, entry)
    return { path: names.map(String).join('/'), mtimeMs: Number(entry.stats.mtimeMs), file }
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

async function* matchOpened(
  openTexts: readonly OpenText[],
  { ripgrep, query, context, keptLines, signal, onCut }: TextSearch,
): AsyncGenerator<FileWithText> {
  const byPath = new Map(openTexts.map((file, index) => [descriptorPath(index), file]))
  const descriptors = openTexts.map(({ file }) => file.fd)
  let foundFile: { -readonly [K in keyof FileWithText]: FileWithText[K] } & { lines: TextLine[] } = emptyMatch()
  for await (const text of matchesIn(ripgrep, query, context, descriptors, signal)) {
    const message = text === undefined ? TOO_LONG : Message.parse(JSON.parse(text))
    if (message.type === 'begin') foundFile = emptyMatch(byPath.get(textOf(message.data.path)))
    else if (message.type === 'end') {
      // What ripgrep takes for binary is not shown.
      if (message.data.binary_offset === null && foundFile.path !== '') yield foundFile
    } else if (message.type === 'match' || message.type === 'context') {
      const isMatch = message.type === 'match'
      if (isMatch) foundFile.matches++
      // One match can be a hundred thousand lines: too many for the arguments of a call.
      if (foundFile.lines.length < keptLines)
        for (const line of linesOf(message.data, isMatch)) foundFile.lines.push(line)
    }
  }
  if (signal.aborted) onCut()
}

const emptyMatch = ({ path, mtimeMs }: Pick<OpenText, 'path' | 'mtimeMs'> = { path: '', mtimeMs: 0 }) => ({
  path,
  mtimeMs,
  matches: 0,
  lines: [] as TextLine[], // an empty list has no type of its elements
})

/** Several lines where a match reaches over line ends. */
function linesOf({ lines, line_number }: z.infer<typeof Lines>, isMatch: boolean): TextLine[] {
  const texts = textOf(lines)
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
  return texts.map((text, at) => ({ line: (line_number ?? 1) + at, text, isMatch }))
}

/** ripgrep's JSON: text, or its bytes in Base64 where they are not UTF-8. */
const Data = z.union([z.object({ text: z.string() }), z.object({ bytes: z.base64() })])
const Lines = z.object({ lines: Data, line_number: z.int().nullable() })

const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('begin'), data: z.object({ path: Data }) }),
  z.object({ type: z.literal('match'), data: Lines }),
  z.object({ type: z.literal('context'), data: Lines }),
  z.object({ type: z.literal('end'), data: z.object({ binary_offset: z.int().nullable() }) }),
  z.object({ type: z.literal('summary') }),
])

const TOO_LONG: z.infer<typeof Message> = {
  type: 'match',
  data: { lines: { text: '[a line that is too long to be shown]' }, line_number: null },
}

const textOf = (data: z.infer<typeof Data>) =>
  'text' in data ? data.text : Buffer.from(data.bytes, 'base64').toString()

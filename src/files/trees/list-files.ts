/** Describes the files in a workdir: pages of a listing, single entries, and counts. */
import type { BigIntStats } from 'node:fs'
import type { FileCount, FileEntry, FilePage, ListFiles } from '../../contract/files.ts'
import { Problem } from '../../contract/problem.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { JailPath } from '../jail/jail-path.ts'
import type { OpenedPath } from '../jail/opened-path.ts'
import type { JailEntry, Jail, Kind } from '../jail/path-jail.ts'
import { fileNotFound, look, openDirectoryIn } from '../jail/path-jail.ts'
import type { WalkEntry } from './tree-walk.ts'
import { walk } from './tree-walk.ts'

/** Lists in the order of the walk, which is stable while files are added and removed. */
export async function listFiles(
  jail: Jail,
  path: JailPath,
  { recursive, limit, page_id }: Pick<ListFiles, 'recursive' | 'limit' | 'page_id'>,
): Promise<FilePage> {
  const listedWhat = `${recursive ? 'all' : 'one'} ${path.text}`
  const after = page_id === undefined ? [] : positionOf(page_id, listedWhat)
  await using directory = await openDirectoryIn(jail, path.names)
  const items: FileEntry[] = []
  let last: WalkEntry | undefined
  for await (const walkEntry of walk(jail, directory, { recursive, after, window: limit + 1 })) {
    // This entry alone shows that there is another page.
    if (last && items.length === limit) return { items, next_page_id: cursorAt(last, listedWhat) }
    await using entry = await lookAt(jail, walkEntry)
    last = walkEntry
    if (entry) items.push(entryOf(entry, pathOfMet(path, walkEntry)))
  }
  return { items, next_page_id: null }
}

export async function describeFile(jail: Jail, path: JailPath): Promise<{ entry: FileEntry; stats: BigIntStats }> {
  const name = path.names.at(-1)
  await using parent = await openDirectoryIn(jail, path.names.slice(0, -1))
  await using entry = await look(jail, parent, name ?? '.')
  if (!entry) throw fileNotFound()
  return { entry: entryOf(entry, path.text), stats: entry.stats }
}

export async function countFiles(jail: Jail, path: JailPath, deadline: number): Promise<FileCount> {
  await using directory = await openDirectoryIn(jail, path.names)
  const counts: Record<Kind, number> = { file: 0, directory: 0, symlink: 0, other: 0 }
  let isTruncated = false
  const isOver = () => (isTruncated ||= performance.now() > deadline)
  for await (const { kind } of walk(jail, directory, { recursive: true, isOver })) {
    counts[kind]++
    if (isOver()) break
  }
  const { file: count, directory: directories, symlink: symlinks, other: others } = counts
  return { count, directories, symlinks, others, truncated: isTruncated }
}

/** Returns the path of an entry, relative to the workdir. */
export function pathOfMet(base: JailPath, { names }: Pick<WalkEntry, 'names'>): string {
  return [...base.names, ...names.map((name) => name.toString())].join('/')
}

function entryOf({ kind, stats }: Pick<JailEntry, 'kind' | 'stats'>, path: string): FileEntry {
  return {
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    type: kind,
    size: kind === 'file' ? Number(stats.size) : 0,
    mtime: stats.mtime.toISOString(),
  }
}

/** Returns undefined if it was removed meanwhile. */
export async function lookAt(jail: Jail, { directory, name }: { directory: OpenedPath; name: Buffer }) {
  return await look(jail, directory, name).catch((error: unknown) => {
    if (error instanceof Problem) return undefined
    throw error
  })
}

/** Encodes bytes as characters of one byte each: a cursor is JSON, and names need not be text. */
const cursorAt = ({ names }: WalkEntry, listedWhat: string) =>
  encodePageId([names.map((name) => name.toString('latin1')).join('/'), listedWhat])

function positionOf(pageId: string, listedWhat: string): Buffer[] {
  const position = decodePageId(pageId)
  if (position?.[1] !== listedWhat) {
    throw new Problem(
      'invalid_cursor',
      'page_id was not issued for this listing; leave it out to start from the first page.',
    )
  }
  return position[0].split('/').map((name) => Buffer.from(name, 'latin1'))
}

/** What the last look has seen, on disk for the next process: an unchanged tree is not read again. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import type { GitStore } from './git-store.ts'
import type { LeftOut, TreeEntry } from './tree-entry.ts'
import type { WrittenSnapshot, WrittenTrees } from './write-snapshot.ts'

/** A file with another format is not read. */
const VERSION = 1

type Row = readonly [string, TreeEntry['kind'], number, string, ...(readonly number[])]
type SavedLook = {
  readonly version: number
  readonly written: WrittenSnapshot
  readonly roots: readonly {
    readonly path: string
    readonly entries: readonly Row[]
    readonly leftOut: readonly LeftOut[]
  }[]
}

const pathIn = ({ directory }: GitStore) => join(directory, 'look.json')

/** Saves the look, not durably: what is lost costs reading the files once more. */
export async function saveLook(store: GitStore, { written, trees }: WrittenTrees): Promise<void> {
  const roots = [...trees].map(([path, { entries, leftOut }]) => ({ path, leftOut, entries: [...entries].map(toRow) }))
  const savedLook: SavedLook = { version: VERSION, written, roots }
  await replaceFile(pathIn(store), JSON.stringify(savedLook), { durable: false })
}

/** Returns undefined if the cache is missing or damaged: all files are read then. */
export async function loadLook(store: GitStore): Promise<WrittenTrees | undefined> {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this file writes it; its directory is the server's own
    const savedLook = JSON.parse(await readFile(pathIn(store), 'utf8')) as SavedLook
    if (savedLook.version !== VERSION) return undefined
    await store.run(['cat-file', '-e', `${savedLook.written.tree}^{tree}`])
    const trees = savedLook.roots.map(
      ({ path, entries, leftOut }) => [path, { leftOut, entries: new Map(entries.map(fromRow)) }] as const,
    )
    return { written: savedLook.written, trees: new Map(trees) }
  } catch {
    return undefined
  }
}

function toRow([path, { kind, mode, blob, seen }]: readonly [string, TreeEntry]): Row {
  return seen ? [path, kind, mode, blob, seen.size, seen.mtimeMs, seen.ctimeMs, seen.ino] : [path, kind, mode, blob]
}

function fromRow([path, kind, mode, blob, size, mtimeMs, ctimeMs, ino]: Row): [string, TreeEntry] {
  const isSeen = size !== undefined && mtimeMs !== undefined && ctimeMs !== undefined && ino !== undefined
  return [path, { kind, mode, blob, seen: isSeen ? { size, mtimeMs, ctimeMs, ino } : undefined }]
}

/** What the last look has seen, on disk for the next process: an unchanged tree is not read again. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { GitStore } from './git-store.ts'
import { readPieces, writePieces } from './json-pieces.ts'
import { treeOf } from './stored-snapshots.ts'
import type { LeftOut, TreeEntry } from './tree-entry.ts'
import type { WrittenSnapshot, WrittenTrees } from './write-snapshot.ts'

/** A file with another format is not read. */
const VERSION = 2

type Row = readonly [string, TreeEntry['kind'], number, string, ...(readonly number[])]
type Head = {
  readonly version: number
  readonly written: WrittenSnapshot
  readonly at: number
  readonly roots: readonly string[]
}

/** `at`: the time of day when it began, Unix time in milliseconds. */
export type SavedLook = WrittenTrees & { readonly at: number }

const pathIn = ({ directory }: GitStore) => join(directory, 'look.json')

/** Saves the look, not durably: what is lost costs reading the files once more. */
export async function saveLook(store: GitStore, { written, trees, at }: SavedLook): Promise<void> {
  const head: Head = { version: VERSION, written, at, roots: [...trees.keys()] }
  const lists = [...trees.values()].flatMap(({ entries, leftOut }, root) => [
    [`entries ${root}`, entries.entries().map(toRow)] as const,
    [`left_out ${root}`, leftOut] as const,
  ])
  await replaceFile(pathIn(store), writePieces(head, lists, createSlices()), { durable: false })
}

/** Returns undefined if the cache is missing, damaged, or of a snapshot that the store has not: all files are read then. */
export async function loadLook(store: GitStore): Promise<SavedLook | undefined> {
  try {
    const { head, pieces } = readPieces(await readFile(pathIn(store)), createSlices())
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this file writes it; its directory is the server's own
    const { version, written, at, roots } = head as Head
    // The commit too: another one with the same tree may have outlived it.
    if (version !== VERSION || (await treeOf(store, written.commit)) !== written.tree) return undefined
    const trees = roots.map((path) => ({ path, entries: new Map<string, TreeEntry>(), leftOut: [] as LeftOut[] }))
    for await (const [name, items] of pieces) {
      const [list, root] = name.split(' ')
      const tree = trees[Number(root)]
      // oxlint-disable typescript/no-unsafe-type-assertion -- as above
      if (list === 'entries') for (const row of items as readonly Row[]) tree?.entries.set(...fromRow(row))
      else tree?.leftOut.push(...(items as readonly LeftOut[]))
      // oxlint-enable typescript/no-unsafe-type-assertion
    }
    return { written, at, trees: new Map(trees.map(({ path, ...tree }) => [path, tree])) }
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

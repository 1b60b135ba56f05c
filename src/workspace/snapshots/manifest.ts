/** What git does not keep of a tree: all mode bits, empty directories, what was left out, and which directories it was of. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Slices } from '../../lib/time-slices.ts'
import { sortInSlices } from './sort-in-slices.ts'
import type { JsonPiece } from './json-pieces.ts'
import { readPieces, writePieces } from './json-pieces.ts'
import type { LeftOut, RootTree, TreeEntry, Trees } from './tree-entry.ts'
import { LEFT_OUT_REASONS } from './tree-entry.ts'

const VERSION = 2

const Modes = z.object({ file: z.int(), program: z.int(), directory: z.int() })
type Modes = z.infer<typeof Modes>

/** The lists follow it, with the name of their root in the tree of git after theirs. */
const Head = z.object({
  version: z.literal(VERSION),
  roots: z.array(
    z.object({
      name: z.string(),
      path: z.string(),
      /** The most frequent ones. */
      modes: Modes,
    }),
  ),
})

const Lists = {
  /** All other modes, by path. */
  odd: z.array(z.tuple([z.string(), z.int()])),
  empty: z.array(z.string()),
  left_out: z.array(z.object({ path: z.string(), reason: z.enum(LEFT_OUT_REASONS) })),
}

/** Version 1 was one object, without the number of its version. */
const First = z.object({
  roots: z.record(
    z.string(),
    z.object({ path: z.string(), modes: Modes, odd: z.unknown(), empty: z.unknown(), left_out: z.unknown() }),
  ),
})

/** Names a root in the tree of git, so that the name stays when others come and go. */
export const rootNameOf = (path: string): string => createHash('sha256').update(path).digest('hex').slice(0, 16)

/** Equal trees have equal manifests. */
export async function writeManifest(trees: Trees, slices: Slices): Promise<Buffer> {
  const roots: z.infer<typeof Head>['roots'] = []
  const lists: (readonly [string, Iterable<unknown>])[] = []
  for (const [path, tree] of [...trees].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = rootNameOf(path)
    const { modes, ...others } = await describeTree(tree, slices)
    roots.push({ name, path, modes })
    for (const [list, items] of Object.entries(others)) lists.push([`${list} ${name}`, items])
  }
  const head: z.infer<typeof Head> = { version: VERSION, roots }
  return Buffer.from((await Array.fromAsync(writePieces(head, lists, slices))).join(''))
}

async function describeTree({ entries, leftOut }: RootTree, slices: Slices) {
  const modes = usualModes(entries)
  const parentNow = createParentOf()
  const holding = new Set<string>()
  const directories: string[] = []
  const odd: [string, number][] = []
  let count = 0
  for (const [path, entry] of entries) {
    if (++count % BATCH === 0) await slices.rest()
    holding.add(parentNow(path))
    if (entry.kind !== 'symlink' && entry.mode !== modes[classOf(entry)]) odd.push([path, entry.mode])
    if (entry.kind === 'directory') directories.push(path)
  }
  const empty = directories.filter((path) => !holding.has(path))
  return {
    modes,
    odd: await sortInSlices(odd, ([a], [b]) => (a < b ? -1 : 1), slices),
    empty: await sortInSlices(empty, (a, b) => (a < b ? -1 : 1), slices),
    left_out: leftOut,
  }
}

/** Entries that are handled before others get a turn. */
const BATCH = 256

const CLASSES = ['file', 'program', 'directory'] as const

function usualModes(entries: RootTree['entries']): Modes {
  const counts = CLASSES.map(() => new Map<number, number>())
  for (const entry of entries.values()) {
    const ofClass = counts[CLASSES.indexOf(classOf(entry))]
    ofClass?.set(entry.mode, (ofClass.get(entry.mode) ?? 0) + 1)
  }
  const usual = (name: keyof Modes, otherwise: number) => {
    const sortedCounts = [...(counts[CLASSES.indexOf(name)] ?? [])].sort(([a, of], [b, than]) => than - of || a - b)
    return sortedCounts[0]?.[0] ?? otherwise
  }
  return { file: usual('file', 0o644), program: usual('program', 0o755), directory: usual('directory', 0o755) }
}

const classOf = ({ kind, mode }: Pick<TreeEntry, 'kind' | 'mode'>): keyof Modes =>
  kind === 'directory' ? 'directory' : isProgram(mode) ? 'program' : 'file'

export const isProgram = (mode: number): boolean => (mode & 0o100) !== 0

export const parentOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0))

/**
 * Finds the parents of many paths, of which most are in the same directory as the one before: cheaper than `parentOf`.
 */
export function createParentOf(): (path: string) => string {
  let last = ''
  return (path) => {
    const isSame = path.lastIndexOf('/') === last.length && path.startsWith(last)
    return isSame ? last : (last = parentOf(path))
  }
}

/** An entry of `git ls-tree`, with its path below the roots. */
export type GitEntry = { readonly mode: string; readonly blob: string; readonly path: string }

type Root = { readonly path: string; readonly modes: Modes; readonly odd: Map<string, number> }

/** Throws if the manifest is damaged, or of a later version. */
export async function readTrees(manifest: Buffer, listed: Iterable<GitEntry>, slices: Slices): Promise<Trees> {
  const { head, pieces } = manifest.includes('\n') ? readPieces(manifest, slices) : readFirst(manifest)
  const roots = Head.parse(head).roots.map(({ name, path, modes }) => {
    const tree = { entries: new Map<string, TreeEntry>(), leftOut: [] as LeftOut[], empty: [] as string[] }
    return [name, { path, modes, odd: new Map<string, number>(), ...tree }] as const
  })
  const byName = new Map(roots)
  for await (const [list, items] of pieces) {
    const [kind, name = ''] = list.split(' ')
    const root = byName.get(name)
    if (kind === 'odd') for (const [path, mode] of Lists.odd.parse(items)) root?.odd.set(path, mode)
    else if (kind === 'empty') root?.empty.push(...Lists.empty.parse(items))
    else root?.leftOut.push(...Lists.left_out.parse(items))
  }
  let count = 0
  for (const { mode: gitMode, blob, path } of listed) {
    if (++count % BATCH === 0) await slices.rest()
    const slash = path.indexOf('/')
    const root = byName.get(path.slice(0, slash))
    if (!root) continue
    const name = path.slice(slash + 1)
    addDirectories(root.entries, name, root)
    if (gitMode === '120000') root.entries.set(name, { kind: 'symlink', mode: 0o777, blob, seen: undefined })
    else {
      const mode = root.odd.get(name) ?? root.modes[gitMode === '100755' ? 'program' : 'file']
      root.entries.set(name, { kind: 'file', mode, blob, seen: undefined })
    }
  }
  for (const root of byName.values()) for (const path of root.empty) addDirectories(root.entries, `${path}/`, root)
  return new Map([...byName.values()].map(({ path, entries, leftOut }) => [path, { entries, leftOut }]))
}

function readFirst(manifest: Buffer): { head: unknown; pieces: Iterable<JsonPiece> } {
  const roots = Object.entries(First.parse(JSON.parse(manifest.toString('utf8'))).roots)
  const lists = roots.flatMap(([name, { odd, empty, left_out }]): JsonPiece[] => [
    [`odd ${name}`, Object.entries(odd ?? {})],
    [`empty ${name}`, z.array(z.unknown()).parse(empty)],
    [`left_out ${name}`, z.array(z.unknown()).parse(left_out)],
  ])
  return { head: { version: VERSION, roots: roots.map(([name, root]) => ({ ...root, name })) }, pieces: lists }
}

/** Adds the directories that the path is in. */
function addDirectories(entries: Map<string, TreeEntry>, path: string, { odd, modes }: Root): void {
  for (let parent = parentOf(path); parent !== '' && !entries.has(parent); parent = parentOf(parent))
    entries.set(parent, { kind: 'directory', mode: odd.get(parent) ?? modes.directory, blob: '', seen: undefined })
}

/** What git does not keep of a tree: all mode bits, empty directories, what was left out, and which directories it was of. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { RootTree, TreeEntry, Trees } from './tree-entry.ts'
import { LEFT_OUT_REASONS } from './tree-entry.ts'

const Modes = z.object({ file: z.int(), program: z.int(), directory: z.int() })
type Modes = z.infer<typeof Modes>

/** The modes by path. A record would have no `__proto__`, and a `constructor` that nobody has written. */
const ModesByPath = z
  .unknown()
  .transform((value) => new Map(z.array(z.tuple([z.string(), z.int()])).parse(Object.entries(value ?? {}))))

const Manifest = z.object({
  /** The keys are the names of the roots in the tree of git. */
  roots: z.record(
    z.string(),
    z.object({
      path: z.string(),
      /** The most frequent ones, and by path all others. */
      modes: Modes,
      odd: ModesByPath,
      empty: z.array(z.string()),
      left_out: z.array(z.object({ path: z.string(), reason: z.enum(LEFT_OUT_REASONS) })),
    }),
  ),
})

/** Names a root in the tree of git, so that the name stays when others come and go. */
export const rootNameOf = (path: string): string => createHash('sha256').update(path).digest('hex').slice(0, 16)

/** Equal trees have equal manifests. */
export function writeManifest(trees: Trees): string {
  const roots = [...trees].map(([path, tree]) => [rootNameOf(path), { path, ...describeTree(tree) }] as const)
  return JSON.stringify({ roots: Object.fromEntries(roots.sort(([a], [b]) => (a < b ? -1 : 1))) })
}

function describeTree({ entries, leftOut }: RootTree) {
  const modes = usualModes(entries)
  const parentNow = createParentOf()
  const holding = new Set<string>()
  const directories: string[] = []
  const odd: [string, number][] = []
  for (const [path, entry] of entries) {
    holding.add(parentNow(path))
    if (entry.kind !== 'symlink' && entry.mode !== modes[classOf(entry)]) odd.push([path, entry.mode])
    if (entry.kind === 'directory') directories.push(path)
  }
  const empty = directories.filter((path) => !holding.has(path))
  return {
    modes,
    odd: Object.fromEntries(odd.sort(([a], [b]) => (a < b ? -1 : 1))),
    empty: empty.sort(),
    left_out: leftOut,
  }
}

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

/** Throws if the manifest is damaged. */
export function readTrees(manifest: string, listed: Iterable<GitEntry>): Trees {
  const { roots } = Manifest.parse(JSON.parse(manifest))
  const all = new Map(Object.values(roots).map(({ path }) => [path, new Map<string, TreeEntry>()] as const))
  for (const { mode: gitMode, blob, path } of listed) {
    const slash = path.indexOf('/')
    const root = roots[path.slice(0, slash)]
    const entries = root && all.get(root.path)
    if (!entries) continue
    const name = path.slice(slash + 1)
    addDirectories(entries, name, root)
    if (gitMode === '120000') entries.set(name, { kind: 'symlink', mode: 0o777, blob, seen: undefined })
    else {
      const mode = root.odd.get(name) ?? root.modes[gitMode === '100755' ? 'program' : 'file']
      entries.set(name, { kind: 'file', mode, blob, seen: undefined })
    }
  }
  for (const root of Object.values(roots))
    for (const path of root.empty) addDirectories(all.get(root.path) ?? new Map<string, TreeEntry>(), `${path}/`, root)
  return new Map(
    Object.values(roots).map(({ path, left_out }) => [
      path,
      { entries: all.get(path) ?? new Map(), leftOut: left_out },
    ]),
  )
}

type Root = z.infer<typeof Manifest>['roots'][string]

/** Adds the directories that the path is in. */
function addDirectories(entries: Map<string, TreeEntry>, path: string, { odd, modes }: Root): void {
  for (let parent = parentOf(path); parent !== '' && !entries.has(parent); parent = parentOf(parent))
    entries.set(parent, { kind: 'directory', mode: odd.get(parent) ?? modes.directory, blob: '', seen: undefined })
}

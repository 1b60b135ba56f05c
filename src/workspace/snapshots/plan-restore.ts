/** What restoring a snapshot would change in a tree. */
import { sortInSlices } from './sort-in-slices.ts'
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { parentOf } from './manifest.ts'
import type { LeftOut, RootTree, TreeEntry, Trees } from './tree-entry.ts'
import { FILE_MODE } from './tree-entry.ts'

/** What changes in one directory; all paths are relative to it. In the order in which they are done. */
export type RootPlan = {
  readonly root: string
  /** Files and links. */
  readonly removed: readonly string[]
  /** The deepest first. */
  readonly removedDirectories: readonly string[]
  /** The highest first, with their final modes. */
  readonly madeDirectories: readonly Change[]
  /** Files and links with another content, kind or mode. */
  readonly written: readonly Change[]
  /** Directories that exist with other modes; the deepest first. */
  readonly changedDirectories: readonly Change[]
  /** What no restore touches, since one of the two snapshots does not contain it. */
  readonly leftOut: readonly LeftOut[]
  /** What the tree was when the plan was made. */
  readonly now: RootTree['entries']
}

export type Change = { readonly path: string; readonly entry: TreeEntry; readonly isNew: boolean }

/**
 * `now` is a snapshot that was just taken: what it does not contain is not removed. A directory that one of the two does
 * not have (it was added, or the workdir has changed since) stays as it is.
 */
export async function planRestore(now: Trees, target: Trees, slices = createSlices()): Promise<readonly RootPlan[]> {
  const plans: RootPlan[] = []
  for (const [root, tree] of now) {
    const wantedTree = target.get(root)
    if (wantedTree) plans.push(await planRoot(root, tree, wantedTree, slices))
  }
  return plans
}

/** Entries that are compared before others get a turn. */
const BATCH = 256

async function planRoot(root: string, now: RootTree, target: RootTree, slices: Slices): Promise<RootPlan> {
  const isKept = keeps([...now.leftOut, ...target.leftOut])
  const removedPaths: string[] = []
  const removedDirectories: string[] = []
  let count = 0
  for (const [path, entry] of now.entries) {
    if (++count % BATCH === 0) await slices.rest()
    const wantedEntry = target.entries.get(path)
    if ((wantedEntry && (wantedEntry.kind === 'directory') === (entry.kind === 'directory')) || isKept(path)) continue
    if (entry.kind === 'directory') removedDirectories.push(path)
    else removedPaths.push(path)
  }
  const createdEntries: Change[] = []
  const writtenEntries: Change[] = []
  const changedEntries: Change[] = []
  for (const [path, entry] of target.entries) {
    if (++count % BATCH === 0) await slices.rest()
    const old = now.entries.get(path)
    if (isSame(entry, old) || isKept(path)) continue
    if (entry.kind !== 'directory') writtenEntries.push({ path, entry, isNew: !old || old.kind === 'directory' })
    else if (old?.kind !== 'directory') createdEntries.push({ path, entry, isNew: true })
    else changedEntries.push({ path, entry, isNew: false })
  }
  const leftOut = new Map([...now.leftOut, ...target.leftOut].map((each) => [each.path, each]))
  const sortByPath = <T extends { readonly path: string }>(changes: readonly T[]) =>
    sortInSlices(changes, (a, b) => (a.path < b.path ? -1 : 1), slices)
  const deepestFirst = (a: string, b: string) => (a < b ? 1 : -1)
  return {
    root,
    now: now.entries,
    removed: await sortInSlices(removedPaths, (a, b) => (a < b ? -1 : 1), slices),
    removedDirectories: await sortInSlices(removedDirectories, deepestFirst, slices),
    madeDirectories: await sortByPath(createdEntries),
    written: await sortByPath(writtenEntries),
    changedDirectories: (await sortByPath(changedEntries)).toReversed(),
    leftOut: await sortByPath([...leftOut.values()]),
  }
}

/** Returns true for what is left out, and for what is in it. */
function keeps(leftOut: readonly LeftOut[]): (path: string) => boolean {
  const paths = new Set(leftOut.map(({ path }) => path))
  if (paths.size === 0) return () => false
  return (path) => {
    for (let at = path; at !== ''; at = parentOf(at)) if (paths.has(at)) return true
    return false
  }
}

const isSame = (entry: TreeEntry, old: TreeEntry | undefined) =>
  old?.kind === entry.kind && old.blob === entry.blob && hasMode(old, entry)

/** True also if no restore would give it the other bits. */
const hasMode = (old: TreeEntry, { kind, mode }: TreeEntry) =>
  kind === 'symlink' || old.mode === mode || (kind === 'file' && old.mode === (mode & FILE_MODE))

/** True if restoring would change nothing. */
export const isEmptyPlan = (plans: readonly RootPlan[]): boolean =>
  plans.every((plan) =>
    [plan.removed, plan.removedDirectories, plan.madeDirectories, plan.written, plan.changedDirectories].every(
      ({ length }) => length === 0,
    ),
  )

/** Returns the paths of one snapshot that differ in the other, or are missing there. */
export const changedPaths = (plans: readonly RootPlan[]): readonly { readonly root: string; readonly path: string }[] =>
  plans.flatMap(({ root, removed, removedDirectories, madeDirectories, written, changedDirectories }) =>
    [
      ...removed,
      ...removedDirectories,
      ...[...madeDirectories, ...written, ...changedDirectories].map(({ path }) => path),
    ].map((path) => ({ root, path })),
  )

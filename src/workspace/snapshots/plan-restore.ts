/** What restoring a snapshot would change in a tree. Pure. */
import { parentOf } from './manifest.ts'
import type { LeftOut, RootTree, TreeEntry, Trees } from './tree-entry.ts'

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
export function planRestore(now: Trees, target: Trees): readonly RootPlan[] {
  return [...now].flatMap(([root, tree]) => {
    const wantedTree = target.get(root)
    return wantedTree ? [planRoot(root, tree, wantedTree)] : []
  })
}

function planRoot(root: string, now: RootTree, target: RootTree): RootPlan {
  const isKept = keeps([...now.leftOut, ...target.leftOut])
  const removedPaths: string[] = []
  const removedDirectories: string[] = []
  for (const [path, entry] of now.entries) {
    const wantedEntry = target.entries.get(path)
    if (isKept(path) || (wantedEntry && (wantedEntry.kind === 'directory') === (entry.kind === 'directory'))) continue
    if (entry.kind === 'directory') removedDirectories.push(path)
    else removedPaths.push(path)
  }
  const createdEntries: Change[] = []
  const writtenEntries: Change[] = []
  const changedEntries: Change[] = []
  for (const [path, entry] of target.entries) {
    const old = now.entries.get(path)
    if (isKept(path)) continue
    if (entry.kind !== 'directory') {
      if (!isSame(entry, old)) writtenEntries.push({ path, entry, isNew: !old || old.kind === 'directory' })
    } else if (old?.kind !== 'directory') createdEntries.push({ path, entry, isNew: true })
    else if (old.mode !== entry.mode) changedEntries.push({ path, entry, isNew: false })
  }
  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)
  return {
    root,
    now: now.entries,
    removed: removedPaths.toSorted(),
    removedDirectories: removedDirectories.toSorted().toReversed(),
    madeDirectories: createdEntries.toSorted(byPath),
    written: writtenEntries.toSorted(byPath),
    changedDirectories: changedEntries.toSorted(byPath).toReversed(),
    leftOut: [...new Map([...now.leftOut, ...target.leftOut].map((each) => [each.path, each])).values()].sort(byPath),
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
  old?.kind === entry.kind && old.blob === entry.blob && (entry.kind === 'symlink' || old.mode === entry.mode)

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

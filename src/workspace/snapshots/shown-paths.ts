/** Paths of snapshots as clients see them: relative in the workdir, absolute in an additional directory, and redacted. */
import { realpath } from 'node:fs/promises'
import type { EventOf } from '../../contract/events/event.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { Totals } from './diff-snapshots.ts'
import { changedPaths } from './plan-restore.ts'
import type { RootPlan } from './plan-restore.ts'
import type { RootKeys } from './root-keys.ts'
import type { LeftOut, TreeEntry } from './tree-entry.ts'
import { shownPath, WRITABLE } from './tree-entry.ts'

/** The entry as `WorkspaceSnapshot` shows it; a path of an additional directory is absolute. */
type ShownLeftOut = EventOf<'WorkspaceSnapshot'>['left_out'][number]

/** What a restore would do, or has done. Paths as they are shown. */
export type RestoreReport = {
  readonly snapshot_id: string
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** Lines of all files together. Absent in a copy, and if counting takes too long. */
  readonly lines?: Totals | undefined
  /** What would be replaced and differs from the last snapshot: somebody has changed it since. */
  readonly changed_since: readonly string[]
  readonly left_out: readonly ShownLeftOut[]
  readonly failed: readonly { readonly path: string; readonly reason: string }[]
}

type PathOfRoot = { readonly root: string; readonly path: string }

export type ShownPathsParts = {
  readonly workdir: () => string
  readonly keys: RootKeys
  readonly redact: (text: string) => string
}

export class ShownPaths {
  readonly #parts: ShownPathsParts

  constructor(parts: ShownPathsParts) {
    this.#parts = parts
  }

  async path(root: string, path: string): Promise<string> {
    return (await this.#showIn(root))(path)
  }

  async leftOut(roots: readonly (readonly [string, readonly LeftOut[]])[]): Promise<ShownLeftOut[]> {
    const slices = createSlices()
    const shownEntries: ShownLeftOut[] = []
    for (const [root, leftOut] of roots) {
      const show = await this.#showIn(root)
      for (const { path, reason } of leftOut) {
        if (shownEntries.length % BATCH === 0) await slices.rest()
        shownEntries.push({ path: show(path), reason })
      }
    }
    return shownEntries
  }

  /**
   * `since`: the plan that would restore the last snapshot. What is as in the target already, or between the two, was changed by
   * a restore before a crash.
   */
  async report(id: string, plans: readonly RootPlan[], since: readonly RootPlan[]): Promise<RestoreReport> {
    const removedPaths = plans.flatMap(({ root, removed: files, removedDirectories }) =>
      [...files, ...removedDirectories].map((path) => ({ root, path })),
    )
    const plannedPaths = changedPaths(plans)
    const [goneKeys, plannedKeys] = [new Set(removedPaths.map(keyOf)), new Set(plannedPaths.map(keyOf))]
    const [targets, lastEntries] = [entriesOf(plans), entriesOf(since)]
    const isBetween = (each: PathOfRoot) => isHalfRestored(targets.get(keyOf(each)), lastEntries.get(keyOf(each)))
    return {
      snapshot_id: id,
      changed: await this.#all(plannedPaths.filter((each) => !goneKeys.has(keyOf(each)))),
      removed: await this.#all(removedPaths),
      changed_since: await this.#all(
        changedPaths(since).filter((each) => plannedKeys.has(keyOf(each)) && !isBetween(each)),
      ),
      left_out: await this.leftOut(plans.map(({ root, leftOut }) => [root, leftOut] as const)),
      failed: [],
    }
  }

  async #all(paths: readonly PathOfRoot[]): Promise<string[]> {
    const slices = createSlices()
    const shownPaths: string[] = []
    let shownRoot: string | undefined
    let show = (path: string) => path
    for (const { root, path } of paths) {
      if (shownPaths.length % BATCH === 0) await slices.rest()
      if (root !== shownRoot) show = await this.#showIn(root)
      shownRoot = root
      shownPaths.push(show(path))
    }
    return shownPaths
  }

  async #showIn(root: string): Promise<(path: string) => string> {
    const { keys, workdir, redact } = this.#parts
    const isWorkdir = root === (await keys.keyOf(await realpath(workdir())))
    const prefix = isWorkdir ? '' : `${await keys.pathOf(root)}/`
    return (path) => redact(`${prefix}${shownPath(path)}`)
  }
}

type PlannedEntry = { readonly entry: TreeEntry; readonly now: TreeEntry | undefined }

const entriesOf = (plans: readonly RootPlan[]): ReadonlyMap<string, PlannedEntry> =>
  new Map(
    plans.flatMap(({ root, now, madeDirectories, written, changedDirectories }) =>
      [...madeDirectories, ...written, ...changedDirectories].map(
        ({ path, entry }) => [keyOf({ root, path }), { entry, now: now.get(path) }] as const,
      ),
    ),
  )

/** True for what a restore does between the last snapshot and its target: it removes what changes its kind, and opens directories. */
function isHalfRestored(target: PlannedEntry | undefined, last: PlannedEntry | undefined): boolean {
  if (!last) return false
  const { now, entry } = last
  if (!now) return target !== undefined && target.entry.kind !== entry.kind
  return now.kind === 'directory' && entry.kind === 'directory' && now.mode === (entry.mode | WRITABLE)
}

const keyOf = ({ root, path }: PathOfRoot) => `${root}\0${path}`

/** Paths that are shown before others get a turn. */
const BATCH = 256

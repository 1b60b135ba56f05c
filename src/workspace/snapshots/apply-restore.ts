/**
 * Puts files back as a plan says. Each name is opened relative to its open directory, and no link is followed: whatever a
 * directory is swapped for, nothing outside is changed.
 */
import { constants } from 'node:fs'
import { chmod, lstat, mkdir, open, readlink, rename, rmdir, symlink, unlink } from 'node:fs/promises'
import { codeOf, ignoreMissing } from '../../lib/error-code.ts'
import type { OpenedPath } from '../../files/jail/opened-path.ts'
import { openAt, openUnmoved, within } from '../../files/jail/opened-path.ts'
import type { FileRules } from '../../files/jail/file-gate.ts'
import { readRules } from '../../files/jail/file-gate.ts'
import type { UnfinishedFiles } from '../../files/jail/unfinished-files.ts'
import type { GitStore } from './git-store.ts'
import { objectName } from './git-objects.ts'
import { parentOf } from './manifest.ts'
import type { Change, RootPlan } from './plan-restore.ts'
import { readUpTo } from './read-up-to.ts'
import type { RootKeys } from './root-keys.ts'
import type { ShownPaths } from './shown-paths.ts'
import { forEachBlob } from './stored-snapshots.ts'
import type { TreeEntry } from './tree-entry.ts'
import { FILE_MODE, isSameStat, MAX_FILE_BYTES, toBytes, WRITABLE } from './tree-entry.ts'

export type RestoreTools = {
  readonly store: GitStore
  readonly unfinished: UnfinishedFiles
  /** Returns false for what must not be changed, by real path. */
  readonly mayWrite: (realPath: string) => boolean
}

export type PlanTools = Pick<RestoreTools, 'store' | 'unfinished'> & {
  readonly rules: FileRules
  readonly keys: RootKeys
  readonly shown: ShownPaths
}

/** Returns the paths that stay as they are, as they are shown. Throws as `applyRestore` does. */
export async function applyPlans(plans: readonly RootPlan[], tools: PlanTools): Promise<RestoreOutcome['failed']> {
  const { keys, shown, rules, ...others } = tools
  const judge = await readRules(rules)
  const mayWrite = (path: string) => judge.judge(path).write
  const failedFiles = []
  for (const plan of plans) {
    const restoreOutcome = await applyRestore({ ...plan, root: await keys.pathOf(plan.root) }, { ...others, mayWrite })
    for (const { path, reason } of restoreOutcome.failed)
      failedFiles.push({ path: await shown.path(plan.root, path), reason })
  }
  return failedFiles
}

/** `failed`: paths that stay as they are, since something that is left out is in the way, or they cannot be written. */
export type RestoreOutcome = { readonly failed: readonly { readonly path: string; readonly reason: string }[] }

const DIRECTORY_MODE = 0o7777

/** Throws what a disk without room throws; what was done by then stays. */
export async function applyRestore(plan: RootPlan, tools: RestoreTools): Promise<RestoreOutcome> {
  await using root = await openUnmoved(plan.root)
  return await new Restore(root, tools).run(plan)
}

type Writing = Change & {
  readonly content: Buffer
  /** Throws if somebody has changed the file. */
  readonly refuse: () => Promise<void>
}

class Restore {
  readonly #root: OpenedPath
  readonly #tools: RestoreTools
  readonly #failed: { path: string; reason: string }[] = []
  #opened: { readonly path: string; readonly place: OpenedPath } | undefined

  constructor(root: OpenedPath, tools: RestoreTools) {
    this.#root = root
    this.#tools = tools
  }

  async run(plan: RootPlan): Promise<RestoreOutcome> {
    try {
      return await this.#run(plan)
    } finally {
      await this.#leave()
    }
  }

  async #run(plan: RootPlan): Promise<RestoreOutcome> {
    const unlockedDirectories = await this.#unlock(plan)
    try {
      await this.#change(plan)
    } finally {
      for (const { path, entry } of unlockedDirectories)
        await this.#attempt(path, (parent, name) => this.#setMode(parent, name, entry.mode))
    }
    return { failed: this.#failed }
  }

  async #change(plan: RootPlan): Promise<void> {
    const { removed, removedDirectories, madeDirectories, written, changedDirectories } = plan
    for (const path of removed)
      await this.#attempt(path, async (parent, name) => {
        await refuseChanged(entryIn(parent, name), plan.now.get(path))
        await unlink(entryIn(parent, name)).catch(ignoreMissing)
      })
    await this.#leave()
    for (const path of removedDirectories)
      await this.#attempt(path, (parent, name) => rmdir(entryIn(parent, name)).catch(ignoreMissing))
    for (const change of madeDirectories)
      await this.#attempt(change.path, async (parent, name) => {
        await mkdir(entryIn(parent, name), { mode: 0o700 })
        // At once if it can be: after a crash, a directory with another mode is one that somebody has changed.
        if ((change.entry.mode & 0o700) === 0o700) await this.#setMode(parent, name, change.entry.mode)
      })
    await this.#leave()
    await forEachBlob(
      this.#tools.store,
      written.map(({ entry }) => entry.blob),
      async (content, index) => {
        const change = written[index]
        if (change)
          await this.#attempt(change.path, async (parent, name) => {
            const refuse = () => refuseChanged(entryIn(parent, name), plan.now.get(change.path))
            await refuse()
            await this.#write(parent, name, { ...change, content, refuse })
          })
      },
    )
    // Last and from below: a directory may be one that nothing can be written to.
    for (const change of [...changedDirectories, ...madeDirectories.toReversed()])
      await this.#attempt(change.path, (parent, name) => this.#setMode(parent, name, change.entry.mode))
  }

  /** Makes the directories writable in which something changes. Returns those that get their modes again. */
  async #unlock(plan: RootPlan): Promise<readonly Change[]> {
    const { now, removed, removedDirectories, madeDirectories, written, changedDirectories } = plan
    const changes = [...madeDirectories, ...written].map(({ path }) => path)
    const parents = new Set<string>()
    for (const path of [...removed, ...removedDirectories, ...changes])
      for (let at = parentOf(path); at !== '' && !parents.has(at); at = parentOf(at)) parents.add(at)
    const lockedDirectories = [...parents].sort().flatMap((path) => {
      const entry = now.get(path)
      return entry?.kind === 'directory' && (entry.mode & WRITABLE) !== WRITABLE ? [{ path, entry, isNew: false }] : []
    })
    for (const { path, entry } of lockedDirectories)
      await this.#attempt(path, (parent, name) => this.#setMode(parent, name, entry.mode | WRITABLE))
    const others = new Set([...removedDirectories, ...changedDirectories.map(({ path }) => path)])
    return lockedDirectories.filter(({ path }) => !others.has(path)).toReversed()
  }

  async #write(parent: OpenedPath, name: Buffer, { entry, content, refuse }: Writing): Promise<void> {
    const temporary = await this.#tools.unfinished.note(parent, 'edit')
    const draft = entryIn(parent, Buffer.from(temporary))
    try {
      if (entry.kind === 'symlink') await symlink(content, draft)
      else {
        await using file = await open(draft, 'wx', 0o600)
        await file.writeFile(content)
        await file.chmod(entry.mode & FILE_MODE)
        await file.datasync()
      }
      // Writing takes its time.
      await refuse()
      await rename(draft, entryIn(parent, name))
    } catch (error) {
      await unlink(draft).catch(() => {})
      throw error
    } finally {
      await this.#tools.unfinished.forget(temporary)
    }
  }

  async #setMode(parent: OpenedPath, name: Buffer, mode: number): Promise<void> {
    await using directory = await openAt(entryIn(parent, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    await chmod(`/proc/self/fd/${directory.handle.fd}`, mode & DIRECTORY_MODE)
  }

  async #attempt(path: string, work: (parent: OpenedPath, name: Buffer) => Promise<unknown>): Promise<void> {
    try {
      const parent = await this.#openParent(path)
      const name = toBytes(path.slice(path.lastIndexOf('/') + 1))
      if (!this.#tools.mayWrite(`${parent.path}/${name.toString()}`)) throw refusal('it belongs to the server')
      await work(parent, name)
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined || !STAYS.has(code)) throw error
      this.#failed.push({ path, reason: WHY[code] ?? (error instanceof Error ? error.message : code) })
    }
  }

  /** The paths are sorted: most have the parent of the one before, which stays open until `leave`. */
  async #openParent(path: string): Promise<OpenedPath> {
    const parent = parentOf(path)
    if (this.#opened?.path !== parent) {
      await this.#leave()
      this.#opened = { path: parent, place: await this.#open(parent) }
    }
    return this.#opened.place
  }

  async #leave(): Promise<void> {
    const openedParent = this.#opened
    this.#opened = undefined
    await openedParent?.place.handle.close()
  }

  async #open(path: string): Promise<OpenedPath> {
    let place = await openAt(within(this.#root, '.'), constants.O_DIRECTORY)
    for (const name of path.split('/').filter(Boolean)) {
      await using outer = place
      place = await openAt(entryIn(outer, toBytes(name)), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    }
    return place
  }
}

/**
 * Throws if the file differs from what the plan was made for: no snapshot has what somebody has written since. What was removed
 * meanwhile is written anyway.
 */
async function refuseChanged(path: Buffer, plannedEntry: TreeEntry | undefined): Promise<void> {
  const stats = await lstat(path).catch(ignoreMissing)
  if (!stats) return
  if (stats.isDirectory()) throw Object.assign(new Error('a directory is in its place'), { code: 'EISDIR' })
  const kind = stats.isSymbolicLink() ? 'symlink' : 'file'
  if (plannedEntry?.kind === kind && plannedEntry.seen && isSameStat(plannedEntry.seen, stats)) return
  const content = plannedEntry?.kind === kind ? await contentOf(path, kind) : undefined
  if (!content || objectName('blob', content) !== plannedEntry?.blob) throw refusal('somebody has changed it meanwhile')
}

async function contentOf(path: Buffer, kind: 'symlink' | 'file'): Promise<Buffer | undefined> {
  if (kind === 'symlink') return await readlink(path, { encoding: 'buffer' })
  return (await readUpTo(path, { limit: MAX_FILE_BYTES + 1 }))?.content
}

const refusal = (why: string) => Object.assign(new Error(why), { code: 'REFUSED' })

/** What concerns one path only; a full disk concerns all of them. */
const STAYS: ReadonlySet<string> = new Set([
  'REFUSED',
  'EACCES',
  'EPERM',
  'EROFS',
  'ELOOP',
  'ENOTDIR',
  'EISDIR',
  'ENOENT',
  'EEXIST',
  'ENOTEMPTY',
  'ENAMETOOLONG',
  'EBUSY',
  'ETXTBSY',
  'EINVAL',
])

const WHY: Readonly<Record<string, string>> = {
  ENOTEMPTY: 'it contains what no snapshot has',
  EEXIST: 'something that no snapshot has is in its place',
  EISDIR: 'a directory that contains what no snapshot has is in its place',
  ENOTDIR: 'something that no snapshot has is in its place',
  ELOOP: 'a link has taken the place of its directory',
  ENOENT: 'its directory is gone',
  EACCES: 'it cannot be written',
  EPERM: 'it cannot be written',
  EROFS: 'it cannot be written',
}

const entryIn = (place: OpenedPath, name: Buffer): Buffer => Buffer.concat([Buffer.from(within(place, '')), name])

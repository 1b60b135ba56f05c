/**
 * The snapshots of one conversation: which there are, as its log says, and what can be done with them. What reads and
 * writes trees is in the other files of this directory; when one is taken, in `conversations/runs/run-snapshots.ts`.
 */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { cursorAhead, Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { FileRules } from '../../files/jail/file-gate.ts'
import { readRules } from '../../files/jail/file-gate.ts'
import type { UnfinishedFiles } from '../../files/jail/unfinished-files.ts'
import { Queue } from '../../lib/queue.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { applyPlans } from './apply-restore.ts'
import { copyStore } from './copy-store.ts'
import type { Totals } from './diff-snapshots.ts'
import { totalsBetween } from './diff-snapshots.ts'
import { draftOfSnapshot, findSnapshot } from './find-snapshot.ts'
import { findGit } from '../git/run-git.ts'
import { GitStore } from './git-store.ts'
import { planRestore } from './plan-restore.ts'
import type { RootPlan } from './plan-restore.ts'
import type { KnownSnapshot, SnapshotLimits } from './prune-snapshots.ts'
import { listSnapshots, packLooks, pruneSnapshots, readMessageSeqs } from './prune-snapshots.ts'
import { RootKeys } from './root-keys.ts'
import type { RootPaths } from './root-keys.ts'
import { commitOf, keepSnapshot, readBlob, readSnapshot, treeOf } from './stored-snapshots.ts'
import type { RestoreReport } from './shown-paths.ts'
import { ShownPaths } from './shown-paths.ts'
import { givenPath } from './tree-entry.ts'
import type { TreeEntry } from './tree-entry.ts'
import { WorkdirLooks } from './workdir-looks.ts'
import type { WrittenTrees } from './write-snapshot.ts'

export type SnapshotsDeps = {
  readonly log: Pick<EventLog, 'head' | 'read' | 'append'>
  /** The server's own directory for this conversation. */
  readonly directory: string
  readonly workdir: () => string
  readonly additionalDirectories: () => readonly string[]
  readonly rules: () => FileRules
  readonly unfinished: UnfinishedFiles
  readonly redact: (text: string) => string
  /** The commit of HEAD of the user's own repository. */
  readonly headCommit: () => Promise<string | undefined>
  readonly limits?: SnapshotLimits | undefined
}

export class WorkspaceSnapshots {
  readonly #deps: SnapshotsDeps
  readonly #store: GitStore | undefined
  readonly #closing = new AbortController()
  /** One snapshot or restore at a time. */
  readonly #queue = new Queue({ limit: 1 })
  readonly #keys: RootKeys
  readonly #shown: ShownPaths
  readonly #looks: WorkdirLooks | undefined
  #knownSnapshots: KnownSnapshot[] | undefined

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps
    const git = findGit()
    const directory = snapshotsOf(deps.directory)
    this.#keys = new RootKeys(directory)
    this.#shown = new ShownPaths({ ...deps, keys: this.#keys })
    this.#store = git === undefined ? undefined : new GitStore(directory, git)
    this.#looks =
      this.#store &&
      new WorkdirLooks({
        store: this.#store,
        keys: this.#keys,
        roots: () => [deps.workdir(), ...deps.additionalDirectories()],
        readShown: async () => {
          const judge = await readRules(deps.rules())
          return (path) => judge.judge(path).read
        },
        signal: this.#closing.signal,
      })
  }

  /** False without git: no snapshot can be taken. */
  get areAvailable(): boolean {
    return this.#store !== undefined
  }

  /** Nothing is in progress when it resolves. */
  async close(): Promise<void> {
    this.#closing.abort(new Problem('unavailable', 'The conversation is being closed; try again.'))
    await this.#queue.run(async () => {})
  }

  /**
   * Takes a snapshot of now, unless nothing has changed since the last one. `asOf` is the seq of the last event that the
   * files are the result of. Returns the snapshot that has the files of now.
   */
  take(asOf: number, runId?: string): Promise<KnownSnapshot> {
    return this.#queue.run(() => this.#take(asOf, runId))
  }

  /** Returns the snapshot with the files as they were after this event. Throws a `Problem` if it does not exist or was deleted. */
  async at(seq: number): Promise<KnownSnapshot> {
    if (seq > this.#deps.log.head) throw cursorAhead('seq', seq, this.#deps.log.head)
    // One that is being taken may be the one.
    await this.#queue.run(async () => {})
    const snapshot = await findSnapshot(this.#deps.log, await this.#list(), seq)
    if (!snapshot || (await commitOf(this.git, snapshot.id)) === undefined) throw noSnapshot(seq)
    return snapshot
  }

  /** All that are kept, in order. */
  async list(): Promise<readonly KnownSnapshot[]> {
    const knownSnapshots = await this.#list()
    const commits = await Promise.all(knownSnapshots.map(({ id }) => commitOf(this.git, id)))
    return knownSnapshots.filter((_, index) => commits[index] !== undefined)
  }

  /** Returns the commit for `differences`: as of an event, or of now. */
  async commitFor(moment: number | 'now'): Promise<string> {
    if (moment !== 'now') return await this.#commitOf(await this.at(moment))
    return (await this.#queue.run(() => this.#looked({ byClient: true }))).written.commit
  }

  /** The directories of now. */
  async roots(): Promise<readonly RootPaths[]> {
    const givenPaths = [this.#deps.workdir(), ...this.#deps.additionalDirectories()]
    const realPaths = await Promise.all(givenPaths.map((path) => realpath(path).catch(() => path)))
    const keys = await Promise.all(realPaths.map((path) => this.#keys.keyOf(path)))
    return realPaths.map((path, index) => ({ key: keys[index] ?? path, shown: index === 0 ? '' : path }))
  }

  /** Compares the last snapshot before this event with the newest one. Returns undefined if there is no snapshot, or if the comparison takes too long. */
  async changesSince(seq: number): Promise<Totals | undefined> {
    const keptSnapshots = await this.list()
    const [from, to] = [keptSnapshots.findLast(({ asOf }) => asOf < seq) ?? keptSnapshots[0], keptSnapshots.at(-1)]
    if (!from || !to || from.id === to.id) return from && { files: 0, added: 0, removed: 0 }
    return await totalsBetween(this.git, [await this.#commitOf(from), await this.#commitOf(to)])
  }

  /** The content of a file of the workdir. Throws a `Problem` if the snapshot has no such file. */
  async readFile(path: string, seq: number): Promise<{ content: Buffer; entry: TreeEntry; snapshot: KnownSnapshot }> {
    const snapshot = await this.at(seq)
    const trees = await readSnapshot(this.git, await this.#commitOf(snapshot))
    const tree = trees.get(await this.#keys.keyOf(await realpath(this.#deps.workdir())))
    const wantedPath = givenPath(path)
    const entry = tree?.entries.get(wantedPath)
    if (entry?.kind === 'file') return { content: await readBlob(this.git, entry.blob), entry, snapshot }
    const gap = tree?.leftOut.find((each) => wantedPath === each.path || wantedPath.startsWith(`${each.path}/`))
    const why = gap ? `it was left out (${gap.reason})` : entry ? `it was a ${entry.kind}` : 'it did not exist'
    throw new Problem('file_not_found', `The snapshot after event ${snapshot.asOf} has no file ${path}: ${why}.`)
  }

  /** Returns what restoring the files as of this event would change now. Changes nothing. */
  async planRestore(seq: number): Promise<RestoreReport> {
    const target = await this.at(seq)
    return await this.#queue.run(async () => {
      const look = await this.#looked({ byClient: true })
      return await this.#report(target, look, await this.#plan(target, look))
    })
  }

  /**
   * Restores the files as of this event; `asOf`: the seq of the last event now. The files of now are in a snapshot first, and
   * those after it in another one. `mayProceed` gets the plan, and throws to refuse.
   */
  async restore(
    moment: number | KnownSnapshot,
    asOf: number,
    mayProceed: (plan: RestoreReport) => void,
  ): Promise<RestoreReport> {
    const target = typeof moment === 'number' ? await this.at(moment) : moment
    return await this.#queue.run(async () => {
      const before = await this.#looked()
      const plans = await this.#plan(target, before)
      const report = await this.#report(target, before, plans)
      mayProceed(report)
      await this.#keep(before, asOf)
      const failures = await this.#apply(plans)
      // Those of before are the files as of the event before it.
      await this.#take(this.#deps.log.head + 1)
      return { ...report, failed: failures }
    })
  }

  /** Restores the workdir of a fork that has no log yet: nothing is stored. Undefined if the snapshot has no such directory. */
  async restoreCopy(seq: number): Promise<RestoreReport | undefined> {
    const target = await this.at(seq)
    return await this.#queue.run(async () => {
      const plans = await this.#plan(target, await this.#looked())
      if (plans.length === 0) return undefined
      const report = await this.#shown.report(target.id, plans, [])
      return { ...report, failed: await this.#apply(plans) }
    })
  }

  /** Removes all of them; their events stay. */
  async purge(): Promise<void> {
    await this.#queue.run(async () => {
      await this.#store?.remove()
      this.#looks?.forget()
    })
  }

  /** Removes those that are not kept; `runStart`: all since then are. */
  async prune(runStart: number): Promise<void> {
    await this.#queue.run(async () => {
      const messages = () => readMessageSeqs(this.#deps.log)
      const keeping = { messages, looks: this.#looks?.recentCommits ?? [], limits: this.#deps.limits }
      await pruneSnapshots(this.git, await this.#list(), { runStart, ...keeping })
      await this.#looks?.save()
    })
  }

  /** Copies the store for a fork, whose workdir has another path. */
  async copyTo(directory: string, movedPaths: ReadonlyMap<string, string>): Promise<void> {
    await this.#queue.run(async () => {
      if (this.#store && (await this.#store.exists()))
        await copyStore(this.#store, snapshotsOf(directory), await this.#keys.moved(movedPaths))
    })
  }

  /** Throws a `Problem` without git. */
  get git(): GitStore {
    if (!this.#store) throw withoutGit()
    return this.#store
  }

  async #looked({ byClient = false } = {}): Promise<WrittenTrees> {
    if (!this.#looks) throw withoutGit()
    const look = await this.#looks.look()
    // A full disk takes no pack, and the look is there.
    if (byClient) await packLooks(this.git, this.#looks.recentCommits).catch(() => {}) // the next look tries again
    return look
  }

  async #take(asOf: number, runId?: string): Promise<KnownSnapshot> {
    return await this.#keep(await this.#looked(), asOf, runId)
  }

  async #keep({ written, trees }: WrittenTrees, asOf: number, runId?: string): Promise<KnownSnapshot> {
    const last = (await this.#list()).at(-1)
    const commit = last && (await commitOf(this.git, last.id))
    const head = await this.#deps.headCommit()
    const isSame =
      commit !== undefined &&
      last?.head === head &&
      (commit === written.commit || (await treeOf(this.git, commit)) === written.tree)
    if (last && isSame) return last
    const id = uuid7()
    await keepSnapshot(this.git, id, written.commit).catch((error: unknown) => {
      // Somebody has removed the store: what this process knows of it is of no use.
      this.#looks?.forget()
      throw error
    })
    const leftOut = await this.#shown.leftOut([...trees].map(([root, tree]) => [root, tree.leftOut] as const))
    const [storedEvent] = await this.#deps.log.append([draftOfSnapshot({ id, asOf, runId, head, leftOut })])
    const knownSnapshot = { id, asOf, seq: storedEvent?.seq ?? asOf, at: Date.now(), head }
    this.#knownSnapshots?.push(knownSnapshot)
    return knownSnapshot
  }

  async #list(): Promise<KnownSnapshot[]> {
    return (this.#knownSnapshots ??= await listSnapshots(this.#deps.log))
  }

  async #commitOf({ id, asOf }: KnownSnapshot): Promise<string> {
    const commit = await commitOf(this.git, id)
    if (commit === undefined) throw noSnapshot(asOf)
    return commit
  }

  async #plan(target: KnownSnapshot, now: WrittenTrees): Promise<readonly RootPlan[]> {
    return await planRestore(now.trees, await readSnapshot(this.git, await this.#commitOf(target)))
  }

  async #apply(plans: readonly RootPlan[]): Promise<RestoreReport['failed']> {
    const { rules, unfinished } = this.#deps
    const tools = { store: this.git, unfinished, rules: rules() }
    return await applyPlans(plans, { ...tools, keys: this.#keys, shown: this.#shown })
  }

  async #report(target: KnownSnapshot, now: WrittenTrees, plans: readonly RootPlan[]): Promise<RestoreReport> {
    const last = (await this.list()).at(-1)
    const report = await this.#shown.report(target.id, plans, last ? await this.#plan(last, now) : [])
    return { ...report, lines: await totalsBetween(this.git, [now.written.commit, await this.#commitOf(target)]) }
  }
}

export const snapshotsOf = (directory: string): string => join(directory, 'snapshots')

const withoutGit = () => new Problem('unavailable', 'Snapshots need git, and this server has none. Install git.')

const noSnapshot = (seq: number) =>
  new Problem(
    'snapshot_not_found',
    `There is no snapshot of the files after event ${seq}: none was taken then, it was removed, or it is on the disk of another instance. GET events?types=WorkspaceSnapshot lists those that were taken.`,
    { details: { seq } },
  )

/**
 * Looks at the directories of a conversation: reads what has changed since the last look, and writes it into the store. One
 * look at a time.
 */
import { realpath } from 'node:fs/promises'
import { Queue } from '../../lib/queue.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { GitStore } from './git-store.ts'
import { loadLook, saveLook } from './look-cache.ts'
import { packsOf, StoredNames } from './pack-index.ts'
import { Problem } from '../../contract/problem.ts'
import type { RootKeys } from './root-keys.ts'
import type { TreeMemory } from './read-tree.ts'
import { MAX_TREE, readTree } from './read-tree.ts'
import type { RootTree, TreeEntry, Trees } from './tree-entry.ts'
import { FINE_MS } from './tree-entry.ts'
import type { WrittenTrees } from './write-snapshot.ts'
import { areSameTrees, SnapshotWriter } from './write-snapshot.ts'

export type LookDeps = {
  readonly store: GitStore
  readonly keys: Pick<RootKeys, 'keyOf'>
  /** The workdir, and the additional directories. */
  readonly roots: () => readonly string[]
  /** Reads the rules of the moment: what the server hides is in no snapshot, by real path. */
  readonly readShown: () => Promise<(realPath: string) => boolean>
  /** Aborted when the conversation is closed. */
  readonly signal: AbortSignal
  /** Replaces a signal that is aborted after `TIMEOUT_MS`. */
  readonly timeout?: () => AbortSignal
}

/** A run waits for its first look. One that takes longer is ended, and the next one continues it. */
const TIMEOUT_MS = 60_000

/** The pages of this many different states of the files can be read to the end. */
const MAX_RECENT = 8

export class WorkdirLooks {
  readonly #deps: LookDeps
  readonly #queue = new Queue({ limit: 1 })
  readonly #stored = new StoredNames()
  #last: WrittenTrees | undefined
  #recentCommits: readonly string[] = []
  /** What a look that was ended has read. The key is that of the root. */
  #unfinished: Entries = new Map()
  /** The time of the last look. */
  #clock: ClockReading | undefined
  /** The key is that of the root. */
  #memories: ReadonlyMap<string, TreeMemory> = new Map()
  #isSaved = true
  #isLoaded = false

  constructor(deps: LookDeps) {
    this.#deps = deps
  }

  /** Rejects with the `Problem`s `workdir_missing` and `workdir_too_large`, and with what git or the disk reports. */
  look(): Promise<WrittenTrees> {
    return this.#queue.run(async () => {
      const look = await this.#look()
      const { commit } = look.written
      this.#recentCommits = [...this.#recentCommits.filter((each) => each !== commit), commit].slice(-MAX_RECENT)
      return look
    })
  }

  /** The commits of the last looks: the next one begins with the last, and clients may still read the others. */
  get recentCommits(): readonly string[] {
    return this.#recentCommits
  }

  /** Saves the look for the next process; otherwise it reads all files once more. */
  async save(): Promise<void> {
    await this.#queue.run(async () => {
      if (this.#isSaved || !this.#last || !this.#clock) return
      await saveLook(this.#deps.store, { ...this.#last, at: this.#clock.at })
      this.#isSaved = true
    })
  }

  /** The store was removed. */
  forget(): void {
    this.#last = undefined
    this.#recentCommits = []
    this.#unfinished = new Map()
    this.#memories = new Map()
    this.#isSaved = true
  }

  async #look(): Promise<WrittenTrees> {
    const { store, timeout = () => AbortSignal.timeout(TIMEOUT_MS) } = this.#deps
    if (!this.#isLoaded) await this.#load()
    const clock = readClock()
    const isTrusted = this.#clock !== undefined && !wasSetBack(this.#clock)
    const signal = AbortSignal.any([this.#deps.signal, timeout()])
    const writer = new SnapshotWriter(store, this.#stored, signal)
    this.#unfinished = await this.#storedOf(this.#unfinished)
    const readEntries = new Map<string, Map<string, TreeEntry>>()
    try {
      const trees = await this.#readAll({ writer, signal, readEntries, isTrusted })
      this.#clock = clock
      const last = this.#last
      // The trees have the times of now.
      if (last && (await areSameTrees(trees, last.trees))) return (this.#last = { ...last, trees })
      // Whatever fails, the next look trusts nothing of the store.
      this.#last = undefined
      const snapshot = await writer.finish(trees, last)
      this.#isSaved = false
      this.#unfinished = new Map()
      return (this.#last = snapshot)
    } catch (error) {
      if (signal.aborted && !this.#deps.signal.aborted && (await writer.keep())) {
        this.#unfinished = readEntries
        this.#clock = clock
      }
      throw error
    } finally {
      await writer.discard()
    }
  }

  async #load(): Promise<void> {
    const { store } = this.#deps
    const savedLook = (await store.exists()) ? await loadLook(store) : undefined
    this.#isLoaded = true
    this.#last = savedLook
    this.#recentCommits = savedLook ? [savedLook.written.commit] : []
    this.#clock = savedLook && { at: savedLook.at }
  }

  /** Returns the entries without those whose content was not written any more, or was removed since. */
  async #storedOf(readEntries: Entries): Promise<Entries> {
    const { store } = this.#deps
    if (readEntries.size === 0 || !(await store.exists())) return new Map()
    await this.#stored.refresh(packsOf(store))
    const slices = createSlices()
    const storedEntries = new Map<string, Map<string, TreeEntry>>()
    for (const [key, entries] of readEntries) {
      const keptEntries = new Map<string, TreeEntry>()
      storedEntries.set(key, keptEntries)
      for (const [path, entry] of entries) {
        await slices.rest()
        if (entry.blob !== '' && this.#stored.has(entry.blob)) keptEntries.set(path, entry)
      }
    }
    return storedEntries
  }

  async #readAll({ writer, signal, readEntries, isTrusted }: Reading): Promise<Trees> {
    const isShown = await this.#deps.readShown()
    const roots = await realRoots(this.#deps.roots())
    const budget = { ...MAX_TREE }
    const trees = new Map<string, RootTree>()
    const memories = new Map<string, TreeMemory>()
    for (const path of roots) {
      const key = await this.#deps.keys.keyOf(path)
      const without = roots.filter((other) => other !== path)
      const entries = new Map<string, TreeEntry>()
      readEntries.set(key, entries)
      const read = await readTree(path, {
        entries,
        knownEntries: isTrusted ? (this.#last?.trees.get(key)?.entries ?? this.#unfinished.get(key)) : undefined,
        memory: isTrusted ? this.#memories.get(key) : undefined,
        store: writer.add,
        isShown,
        without,
        signal,
        budget,
      })
      trees.set(key, read.tree)
      memories.set(key, read.memory)
    }
    this.#memories = memories
    return trees
  }
}

type Entries = ReadonlyMap<string, ReadonlyMap<string, TreeEntry>>

type Reading = {
  readonly writer: SnapshotWriter
  readonly signal: AbortSignal
  /** Gets what is read of each root, also if the reading ends early. */
  readonly readEntries: Map<string, Map<string, TreeEntry>>
  /** False if times say nothing about what has changed. */
  readonly isTrusted: boolean
}

/**
 * An additional directory that is gone, or in another one, has no tree; a workdir must be there. They were real paths when they
 * were given: one that leads elsewhere now was replaced by a link, perhaps to what nobody may read here.
 */
async function realRoots(givenPaths: readonly string[]): Promise<readonly string[]> {
  const realPaths = await Promise.all(givenPaths.map((path) => realpath(path).catch(() => undefined)))
  const [workdir] = givenPaths
  if (workdir === undefined || realPaths[0] === undefined) throw missing('does not exist')
  if (realPaths[0] !== workdir) throw missing('leads elsewhere now')
  const all = [...new Set(givenPaths.filter((path, index) => realPaths[index] === path))]
  return all.filter((path) => path === workdir || !all.some((other) => other !== path && path.startsWith(`${other}/`)))
}

const missing = (why: string) =>
  new Problem('workdir_missing', `A snapshot cannot be taken: the path of the workdir ${why}. Put the directory back.`)

/** Times in milliseconds: the time of day, and when this process began. A clock that was set back gives changed files old times. */
type ClockReading = { readonly at: number; readonly offset?: number }

/** Clocks are often set by less. Files that are known have older times than this; see `settledStat`. */
const HARMLESS_MS = FINE_MS / 2

const readClock = (): ClockReading & { readonly offset: number } => {
  const at = Date.now()
  return { at, offset: at - performance.now() }
}

/** `earlier` is without `offset` if it is of another process. */
function wasSetBack(earlier: ClockReading): boolean {
  const { at, offset } = readClock()
  return at < earlier.at || (earlier.offset !== undefined && offset < earlier.offset - HARMLESS_MS)
}

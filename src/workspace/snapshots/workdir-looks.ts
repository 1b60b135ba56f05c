/**
 * Looks at the directories of a conversation: reads what has changed since the last look, and writes it into the store. One
 * look at a time.
 */
import { realpath } from 'node:fs/promises'
import { Queue } from '../../lib/queue.ts'
import type { GitStore } from './git-store.ts'
import { loadLook, saveLook } from './look-cache.ts'
import { StoredNames } from './pack-index.ts'
import type { RootKeys } from './root-keys.ts'
import type { TreeMemory } from './read-tree.ts'
import { MAX_TREE, readTree, UnreadableTree } from './read-tree.ts'
import type { RootTree, Trees } from './tree-entry.ts'
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
}

/** A tree that cannot be read in this time changes too fast, or its disk does not answer. */
const TIMEOUT_MS = 60_000

export class WorkdirLooks {
  readonly #deps: LookDeps
  readonly #queue = new Queue({ limit: 1 })
  readonly #stored = new StoredNames()
  #last: WrittenTrees | undefined
  /** The key is that of the root. */
  #memories: ReadonlyMap<string, TreeMemory> = new Map()
  #isSaved = true
  #isLoaded = false

  constructor(deps: LookDeps) {
    this.#deps = deps
  }

  /** Rejects with an `UnreadableTree`, and with what git or the disk reports. */
  look(): Promise<WrittenTrees> {
    return this.#queue.run(() => this.#look())
  }

  get lastCommit(): string | undefined {
    return this.#last?.written.commit
  }

  /** Saves the look for the next process; otherwise it reads all files once more. */
  async save(): Promise<void> {
    await this.#queue.run(async () => {
      if (this.#isSaved || !this.#last) return
      await saveLook(this.#deps.store, this.#last)
      this.#isSaved = true
    })
  }

  /** The store was removed. */
  forget(): void {
    this.#last = undefined
    this.#memories = new Map()
    this.#isSaved = true
  }

  async #look(): Promise<WrittenTrees> {
    const { store } = this.#deps
    if (!this.#isLoaded) this.#last = (await store.exists()) ? await loadLook(store) : undefined
    this.#isLoaded = true
    const signal = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(TIMEOUT_MS)])
    const writer = new SnapshotWriter(store, this.#stored, signal)
    try {
      const trees = await this.#readAll(writer, signal)
      const last = this.#last
      // The trees have the times of now.
      if (last && (await areSameTrees(trees, last.trees))) return (this.#last = { ...last, trees })
      // Whatever fails, the next look trusts nothing of the store.
      this.#last = undefined
      const snapshot = await writer.finish(trees, last)
      this.#isSaved = false
      return (this.#last = snapshot)
    } finally {
      await writer.discard()
    }
  }

  async #readAll(writer: SnapshotWriter, signal: AbortSignal): Promise<Trees> {
    const isShown = await this.#deps.readShown()
    const roots = await realRoots(this.#deps.roots())
    const budget = { ...MAX_TREE }
    const trees = new Map<string, RootTree>()
    const memories = new Map<string, TreeMemory>()
    for (const path of roots) {
      const key = await this.#deps.keys.keyOf(path)
      const knownEntries = this.#last?.trees.get(key)?.entries
      const without = roots.filter((other) => other !== path)
      const memory = this.#memories.get(key)
      const read = await readTree(path, {
        knownEntries,
        memory,
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

/**
 * An additional directory that is gone, or in another one, has no tree; a workdir must be there. They were real paths when they
 * were given: one that leads elsewhere now was replaced by a link, perhaps to what nobody may read here.
 */
async function realRoots(givenPaths: readonly string[]): Promise<readonly string[]> {
  const realPaths = await Promise.all(givenPaths.map((path) => realpath(path).catch(() => undefined)))
  const [workdir] = givenPaths
  if (workdir === undefined || realPaths[0] === undefined) throw new UnreadableTree('the workdir does not exist')
  if (realPaths[0] !== workdir) throw new UnreadableTree('the path of the workdir leads elsewhere now')
  const all = [...new Set(givenPaths.filter((path, index) => realPaths[index] === path))]
  return all.filter((path) => path === workdir || !all.some((other) => other !== path && path.startsWith(`${other}/`)))
}

/** Writes trees into the store, in one pack that has only what the store has not. An unchanged tree writes nothing. */
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { DIRECTORY, objectName, treeContent, writeRootTrees } from './git-objects.ts'
import type { TreeLine, TreeNames } from './git-objects.ts'
import type { GitStore } from './git-store.ts'
import { rootNameOf, writeManifest } from './manifest.ts'
import type { ObjectKind } from './pack-file.ts'
import { PackFile } from './pack-file.ts'
import type { StoredNames } from './pack-index.ts'
import { packsOf } from './pack-index.ts'
import type { RootTree, Trees } from './tree-entry.ts'

export type WrittenSnapshot = { readonly commit: string; readonly tree: string }

/** The trees as they were when they were written. */
export type WrittenTrees = {
  readonly written: WrittenSnapshot
  readonly trees: Trees
  /** The key is that of the root; unknown to a later process. */
  readonly names?: ReadonlyMap<string, TreeNames> | undefined
}

export class SnapshotWriter {
  readonly #store: GitStore
  readonly #signal: AbortSignal
  readonly #slices = createSlices()
  readonly #stored: StoredNames
  #pack: Promise<PackFile> | undefined

  /** `stored`: what earlier writers have used for this store. */
  constructor(store: GitStore, storedNames: StoredNames, signal: AbortSignal) {
    this.#store = store
    this.#stored = storedNames
    this.#signal = signal
  }

  /** `name`: that of the content in git. */
  readonly add = (name: string, content: Buffer): Promise<void> => this.#add('blob', name, content)

  /** `base`: what was written last, for which no content was added. Rejects if the store has lost it. */
  async finish(trees: Trees, base: WrittenTrees | undefined): Promise<WrittenTrees> {
    const pack = await this.#begin()
    if (base && !this.#stored.has(base.written.tree))
      throw new Error('the store of the snapshots has lost the last one')
    const add = (content: Buffer) => this.#addNew('tree', content)
    const roots: TreeLine[] = []
    const names = new Map<string, TreeNames>()
    for (const [path, tree] of trees) {
      const [entries, knownNames] = [base?.trees.get(path)?.entries, base?.names?.get(path)]
      const before = entries && knownNames && { entries, names: knownNames }
      const writtenTrees = await writeRootTrees(tree, before, add, this.#slices)
      names.set(path, writtenTrees)
      const object = writtenTrees.get('')
      if (object !== undefined) roots.push({ mode: DIRECTORY, name: rootNameOf(path), object })
    }
    const manifest = await this.#addNew('blob', await writeManifest(trees, this.#slices))
    const top: TreeLine[] = [{ mode: '100644', name: 'manifest', object: manifest }]
    if (roots.length > 0) top.push({ mode: DIRECTORY, name: 'files', object: await add(treeContent(roots)) })
    const tree = await add(treeContent(top))
    const who = `agent-server <> ${Math.floor(Date.now() / 1000)} +0000`
    const commit = await this.#addNew('commit', Buffer.from(`tree ${tree}\nauthor ${who}\ncommitter ${who}\n\n`))
    this.#signal.throwIfAborted()
    if (!pack.isEmpty) await pack.finish(this.#slices)
    return { written: { commit, tree }, trees, names }
  }

  /** Ends it without a snapshot, and stores what was added. Resolves to true if there is anything. */
  async keep(): Promise<boolean> {
    const pack = await this.#pack
    if (!pack || pack.isEmpty) return false
    await pack.finish(this.#slices)
    return true
  }

  /** Ends it without a snapshot; after `finish` it does nothing. */
  async discard(): Promise<void> {
    const pack = await this.#pack?.catch(() => undefined)
    await pack?.discard()
  }

  async #addNew(kind: ObjectKind, content: Buffer): Promise<string> {
    const name = objectName(kind, content)
    await this.#add(kind, name, content)
    return name
  }

  async #add(kind: ObjectKind, name: string, content: Buffer): Promise<void> {
    const pack = await this.#begin()
    this.#signal.throwIfAborted()
    if (!this.#stored.has(name)) await pack.add(kind, name, content)
  }

  #begin(): Promise<PackFile> {
    return (this.#pack ??= this.#prepare())
  }

  async #prepare(): Promise<PackFile> {
    await this.#store.make()
    await this.#store.clean()
    const directory = packsOf(this.#store)
    await this.#stored.refresh(directory)
    return await PackFile.create(directory)
  }
}

/** Resolves to true if nothing would be written. */
export async function areSameTrees(a: Trees, b: Trees, slices: Slices = createSlices()): Promise<boolean> {
  if (a.size !== b.size) return false
  for (const [path, tree] of a) {
    const other = b.get(path)
    if (!other || !(await isSameTree(tree, other, slices))) return false
  }
  return true
}

async function isSameTree(tree: RootTree, other: RootTree, slices: Slices): Promise<boolean> {
  if (other.entries.size !== tree.entries.size || other.leftOut.length !== tree.leftOut.length) return false
  let count = 0
  for (const [name, entry] of tree.entries) {
    if (++count % BATCH === 0) await slices.rest()
    const old = other.entries.get(name)
    if (entry !== old && !(old?.blob === entry.blob && old.mode === entry.mode && old.kind === entry.kind)) return false
  }
  return tree.leftOut.every((omission, index) => {
    const old = other.leftOut[index]
    return old?.path === omission.path && old.reason === omission.reason
  })
}

/** Entries that are compared before others get a turn. */
const BATCH = 256

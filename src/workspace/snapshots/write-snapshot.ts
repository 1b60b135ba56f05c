/** Writes trees into the store, in one pack that has only what the store has not. An unchanged tree writes nothing. */
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { DIRECTORY, objectName, treeContent, writeRootTree } from './git-objects.ts'
import type { TreeLine } from './git-objects.ts'
import type { GitStore } from './git-store.ts'
import { rootNameOf, writeManifest } from './manifest.ts'
import type { ObjectKind } from './pack-file.ts'
import { PackFile } from './pack-file.ts'
import { StoredNames } from './pack-index.ts'
import type { TreeEntry, Trees } from './tree-entry.ts'

/** What was written last; the next snapshot begins with it. */
export type WrittenSnapshot = { readonly commit: string; readonly tree: string }

/** Git keeps what it leads to. */
const LAST = 'refs/heads/last'

type Parts = { readonly stored: StoredNames; readonly pack: PackFile }

export class SnapshotWriter {
  readonly #store: GitStore
  readonly #signal: AbortSignal
  readonly #slices = createSlices()
  #parts: Promise<Parts> | undefined

  constructor(store: GitStore, signal: AbortSignal) {
    this.#store = store
    this.#signal = signal
  }

  /** `name`: that of the content in git. */
  readonly add = (name: string, content: Buffer): Promise<void> => this.#add('blob', name, content)

  /** `base`: the trees that content was not added for. Rejects if the store has lost them. */
  async finish(trees: Trees, base: WrittenSnapshot | undefined): Promise<WrittenSnapshot> {
    const { stored, pack } = await this.#begin()
    if (base && !stored.has(base.tree)) throw new Error('the store of the snapshots has lost the last one')
    const add = (content: Buffer) => this.#addNew('tree', content)
    const roots: TreeLine[] = []
    for (const [path, tree] of trees) {
      const object = await writeRootTree(tree, add, this.#slices)
      if (object !== undefined) roots.push({ mode: DIRECTORY, name: rootNameOf(path), object })
    }
    const manifest = await this.#addNew('blob', Buffer.from(writeManifest(trees)))
    const top: TreeLine[] = [{ mode: '100644', name: 'manifest', object: manifest }]
    if (roots.length > 0) top.push({ mode: DIRECTORY, name: 'files', object: await add(treeContent(roots)) })
    const tree = await add(treeContent(top))
    const who = `agent-server <> ${Math.floor(Date.now() / 1000)} +0000`
    const commit = await this.#addNew('commit', Buffer.from(`tree ${tree}\nauthor ${who}\ncommitter ${who}\n\n`))
    this.#signal.throwIfAborted()
    if (!pack.isEmpty) await pack.finish(this.#slices)
    // The name of the draft is that of a lock, which is no name of a commit.
    const last = join(this.#store.directory, LAST)
    await replaceFile(last, `${commit}\n`, { draft: `${last}.lock` })
    return { commit, tree }
  }

  /** Ends it without a snapshot; after `finish` it does nothing. */
  async discard(): Promise<void> {
    const parts = await this.#parts?.catch(() => undefined)
    await parts?.pack.discard()
  }

  async #addNew(kind: ObjectKind, content: Buffer): Promise<string> {
    const name = objectName(kind, content)
    await this.#add(kind, name, content)
    return name
  }

  async #add(kind: ObjectKind, name: string, content: Buffer): Promise<void> {
    const { stored, pack } = await this.#begin()
    this.#signal.throwIfAborted()
    if (!stored.has(name)) await pack.add(kind, name, content)
  }

  #begin(): Promise<Parts> {
    return (this.#parts ??= this.#prepare())
  }

  async #prepare(): Promise<Parts> {
    await this.#store.make()
    await this.#store.clean()
    const directory = join(this.#store.directory, 'objects/pack')
    return { stored: await StoredNames.read(directory), pack: await PackFile.create(directory) }
  }
}

/** True if nothing would be written. */
export function areSameTrees(a: Trees, b: Trees): boolean {
  if (a.size !== b.size) return false
  return a.entries().every(([path, tree]) => {
    const other = b.get(path)
    if (!other || other.entries.size !== tree.entries.size || other.leftOut.length !== tree.leftOut.length) return false
    const isSame = (entry: TreeEntry, old: TreeEntry | undefined) =>
      entry === old || (old?.blob === entry.blob && old.mode === entry.mode && old.kind === entry.kind)
    return (
      tree.entries.entries().every(([name, entry]) => isSame(entry, other.entries.get(name))) &&
      tree.leftOut.every((left, index) => {
        const old = other.leftOut[index]
        return old?.path === left.path && old.reason === left.reason
      })
    )
  })
}

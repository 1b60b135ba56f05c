/** Reads snapshots from the store: their trees, and the content of their files. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { Problem } from '../../contract/problem.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { ignoreMissing } from '../../lib/error-code.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { GitStore } from './git-store.ts'
import { unreadable } from './git-store.ts'
import type { GitEntry } from './manifest.ts'
import { readTrees } from './manifest.ts'
import type { Trees } from './tree-entry.ts'

const refOf = (store: GitStore, id: string) => join(store.directory, 'refs', 'snapshots', id)

/** Durable when it resolves. A part of a name would end each later repack. */
export const keepSnapshot = (store: GitStore, id: string, commit: string): Promise<void> =>
  writeRef(refOf(store, id), commit)

/** The next repack keeps what these commits lead to, and no longer those of the call before, though no snapshot has them. */
export async function keepLooks(store: GitStore, commits: readonly string[]): Promise<void> {
  const directory = join(store.directory, 'refs', 'heads')
  // Stores of earlier versions have none.
  await makeDirectories(directory, 0o700)
  for (const name of await readdir(directory))
    if (!commits.includes(name)) await rm(join(directory, name), { force: true })
  for (const commit of commits) await writeRef(join(directory, commit), commit)
}

/** Git takes the draft for a lock, and `clean` removes it. */
const writeRef = (path: string, commit: string) => replaceFile(path, `${commit}\n`, { draft: `${path}.lock` })

/** What only it contains is removed by the next `pack`. */
export const forgetSnapshot = async (store: GitStore, id: string): Promise<void> =>
  await rm(refOf(store, id), { force: true })

/** Undefined if there is no such snapshot any more. */
export async function commitOf(store: GitStore, id: string): Promise<string | undefined> {
  return (await readFile(refOf(store, id), 'utf8').catch(ignoreMissing))?.trim()
}

/** Undefined if the store is damaged. */
export async function treeOf(store: GitStore, commit: string): Promise<string | undefined> {
  const reading = store.run(['rev-parse', '--verify', '--end-of-options', `${commit}^{tree}`])
  const tree = await reading.catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error
  })
  return tree?.toString().trim()
}

/** Throws a `Problem` if the store has no such snapshot, or one of a later version. */
export async function readSnapshot(store: GitStore, commit: string): Promise<Trees> {
  const [manifest, listedEntries] = await Promise.all([
    store.run(['cat-file', 'blob', `${commit}:manifest`]),
    store.run(['ls-tree', '-r', '-z', `${commit}:files`]).catch((error: unknown) => {
      // Git has no empty directories, so trees without a file have no directory of files.
      const causeText = error instanceof Error ? String(error.cause) : ''
      if (/Not a valid object name|not a tree object/i.test(causeText)) return Buffer.alloc(0)
      throw error
    }),
  ])
  try {
    return await readTrees(manifest, entriesIn(listedEntries), createSlices())
  } catch (error) {
    throw unreadable(error)
  }
}

/** `100644 blob 0123…\tpath`, each ended by NUL. */
function* entriesIn(listedEntries: Buffer): Generator<GitEntry> {
  for (let start = 0, end = 0; start < listedEntries.length; start = end + 1) {
    end = listedEntries.indexOf(0, start)
    const line = listedEntries.toString('latin1', start, end)
    const tab = line.indexOf('\t')
    const [mode, , blob] = line.slice(0, tab).split(' ')
    if (mode !== undefined && blob !== undefined) yield { mode, blob, path: line.slice(tab + 1) }
  }
}

export const readBlob = async (store: GitStore, blob: string): Promise<Buffer> =>
  await store.run(['cat-file', 'blob', blob])

/**
 * Calls `use` with the content of each of these blobs, in order; one process, and one content in memory at a time. Only reading is
 * limited: a restore of many files takes long.
 */
export async function forEachBlob(
  store: GitStore,
  blobs: readonly string[],
  use: (content: Buffer, index: number) => Promise<void>,
): Promise<void> {
  if (blobs.length === 0) return
  const git = store.start(['cat-file', '--batch'])
  git.stdin.end(blobs.map((blob) => `${blob}\n`).join(''))
  const reader = new ByteReader(git.stdout, { limit: store.limit, end: () => git.kill() })
  try {
    for (const [index, blob] of blobs.entries()) {
      const [, kind, size] = (await reader.line()).split(' ')
      if (kind !== 'blob') throw unreadable(new Error(`${blob} is missing`))
      await use(await reader.bytes(Number(size)), index)
      await reader.bytes(1)
    }
    await git.ended
  } finally {
    git.kill()
  }
}

type ReadLimit = Pick<GitStore, 'limit'> & { readonly end: () => void }

class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #limit: ReadLimit
  #rest: Buffer = Buffer.alloc(0)

  constructor(stream: AsyncIterable<unknown>, limit: ReadLimit) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
    this.#chunks = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    this.#limit = limit
  }

  async line(): Promise<string> {
    while (!this.#rest.includes(10)) this.#rest = Buffer.concat([this.#rest, await this.#next()])
    const end = this.#rest.indexOf(10)
    const line = this.#rest.subarray(0, end).toString('latin1')
    this.#rest = this.#rest.subarray(end + 1)
    return line
  }

  async bytes(length: number): Promise<Buffer> {
    const parts = [this.#rest]
    let has = this.#rest.length
    while (has < length) {
      const next = await this.#next()
      parts.push(next)
      has += next.length
    }
    const all = Buffer.concat(parts)
    this.#rest = all.subarray(length)
    return all.subarray(0, length)
  }

  async #next(): Promise<Buffer> {
    const { limit, end } = this.#limit
    const signal = limit()
    signal.addEventListener('abort', end)
    try {
      const { done, value } = await this.#chunks.next()
      if (done) throw new Error('git cat-file ended early')
      return value
    } finally {
      signal.removeEventListener('abort', end)
    }
  }
}

/**
 * Writes trees into the store by one `git fast-import`, which gets only what has changed since the last time. It is started
 * by the first content that is not known: an unchanged tree needs no process.
 */
import type { GitStore, RunningGit } from './git-store.ts'
import { isProgram, rootNameOf, writeManifest } from './manifest.ts'
import type { TreeEntry, Trees } from './tree-entry.ts'

/** What was written last; the next snapshot begins with it. */
export type WrittenSnapshot = { readonly commit: string; readonly tree: string }

const LAST = 'refs/heads/last'

export class SnapshotWriter {
  readonly #store: GitStore
  readonly #signal: AbortSignal
  #git: RunningGit | undefined
  #preparation: Promise<void> | undefined

  constructor(store: GitStore, signal: AbortSignal) {
    this.#store = store
    this.#signal = signal
  }

  readonly add = async (content: Buffer): Promise<void> => {
    const git = await this.#start()
    // In one piece: files are read concurrently.
    await git.write(Buffer.concat([Buffer.from(`blob\ndata ${content.length}\n`), content, NEWLINE]))
  }

  /** Without `base`, all of the trees are written. */
  async finish(
    trees: Trees,
    base: { readonly written: WrittenSnapshot; readonly trees: Trees } | undefined,
  ): Promise<WrittenSnapshot> {
    const git = await this.#start()
    const seconds = Math.floor(Date.now() / 1000)
    await git.write(`commit ${LAST}\nmark :1\ncommitter agent-server <> ${seconds} +0000\ndata 0\n`)
    if (base) await git.write(`M 040000 ${base.written.tree} ""\n`)
    for (const lines of inPieces(changesIn(trees, base?.trees ?? new Map()))) await git.write(lines)
    const manifest = Buffer.from(writeManifest(trees))
    await git.write(
      Buffer.concat([Buffer.from(`M 100644 inline manifest\ndata ${manifest.length}\n`), manifest, NEWLINE]),
    )
    git.stdin.end('\nget-mark :1\nls :1 ""\ndone\n')
    let said = ''
    for await (const chunk of git.stdout) said += String(chunk)
    await git.ended
    const [commit, tree] = said.match(/\b[0-9a-f]{40}\b/g) ?? []
    if (!commit || !tree) throw new Error(`git fast-import gave no names: ${said.slice(0, 200)}`)
    return { commit, tree }
  }

  /** Ends it without a snapshot. */
  discard(): void {
    this.#git?.kill()
  }

  async #prepare(): Promise<void> {
    await this.#store.make()
    await this.#store.clean()
  }

  async #start(): Promise<RunningGit> {
    await (this.#preparation ??= this.#prepare())
    return (this.#git ??= this.#store.start(
      ['fast-import', '--quiet', '--done', '--force', '--depth=0', '--date-format=raw'],
      this.#signal,
    ))
  }
}

const NEWLINE = Buffer.from('\n')

/** Removals first: a file may take the name of a directory, and the other way round. */
function* changesIn(trees: Trees, before: Trees): Generator<string> {
  for (const [root, { entries }] of before) {
    const now = trees.get(root)?.entries
    for (const [path, entry] of entries)
      if (entry.kind !== 'directory' && !isStored(now?.get(path))) yield `D ${quote(gitPath(root, path))}\n`
  }
  for (const [root, { entries }] of trees) {
    const known = before.get(root)?.entries
    for (const [path, entry] of entries) {
      const mode = gitModeOf(entry)
      const old = known?.get(path)
      if (mode === undefined || (old && old.blob === entry.blob && gitModeOf(old) === mode)) continue
      yield `M ${mode} ${entry.blob} ${quote(gitPath(root, path))}\n`
    }
  }
}

const isStored = (entry: TreeEntry | undefined) => entry !== undefined && entry.kind !== 'directory'

const gitPath = (root: string, path: string) => `files/${rootNameOf(root)}/${path}`

const gitModeOf = ({ kind, mode }: TreeEntry): string | undefined =>
  kind === 'directory' ? undefined : kind === 'symlink' ? '120000' : isProgram(mode) ? '100755' : '100644'

const quote = (path: string) => `"${path.replace(/["\\\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`))}"`

const PIECE = 64 * 1024

function* inPieces(lines: Iterable<string>): Generator<string> {
  let piece = ''
  for (const line of lines) {
    piece += line
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  yield piece
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

/** The names and the contents of objects of git, and the trees of a snapshot as such. */
import { createHash } from 'node:crypto'
import type { Slices } from '../../lib/time-slices.ts'
import type { ObjectKind } from './pack-file.ts'
import { createParentOf, isProgram, parentOf } from './manifest.ts'
import type { RootTree, TreeEntry } from './tree-entry.ts'

/** SHA-1, as hexadecimal digits. */
export function objectName(kind: ObjectKind, content: Buffer): string {
  return createHash('sha1').update(`${kind} ${content.length}\0`).update(content).digest('hex')
}

/** `name` has no slash, and is bytes as characters (latin1). */
export type TreeLine = { readonly mode: string; readonly name: string; readonly object: string }

export const DIRECTORY = '40000'

/** Git sorts a directory as if its name ended with a slash. */
const sortKey = ({ mode, name }: TreeLine) => (mode === DIRECTORY ? `${name}/` : name)

export function treeContent(lines: readonly TreeLine[]): Buffer {
  const keyedLines = lines.map((line) => ({ line, key: sortKey(line) }))
  keyedLines.sort((a, b) => (a.key < b.key ? -1 : 1))
  const bytes = Buffer.from(keyedLines.map(({ line }) => line.object).join(''), 'hex').toString('latin1')
  const text = keyedLines.map(
    ({ line: { mode, name } }, at) => `${mode} ${name}\0${bytes.slice(at * 20, at * 20 + 20)}`,
  )
  return Buffer.from(text.join(''), 'latin1')
}

/** What the trees of one root are called, by directory; those without a file have none. */
export type TreeNames = ReadonlyMap<string, string>
type WrittenRoot = { readonly entries: RootTree['entries']; readonly names: TreeNames }

/** Names that are handled before others get a turn. */
const BATCH = 256

/**
 * Calls `add` with each tree that `before` has not, from below. Returns the names of all of them; that of the root is at ''.
 * `before`: what was written last, of the same root.
 */
export async function writeRootTrees(
  { entries }: Pick<RootTree, 'entries'>,
  before: WrittenRoot | undefined,
  add: (content: Buffer) => Promise<string>,
  slices: Slices,
): Promise<TreeNames> {
  const names = new Map(before?.names)
  const changedPaths = before ? await changedDirectories(entries, before.entries, slices) : undefined
  const linesBy = await linesOf(entries, names, changedPaths, slices)
  // What is in a directory has a longer path.
  for (const path of [...linesBy.keys()].sort((a, b) => b.length - a.length)) {
    await slices.rest()
    const lines = linesBy.get(path) ?? []
    if (lines.length === 0) {
      names.delete(path)
      continue
    }
    const object = await add(treeContent(lines))
    names.set(path, object)
    if (path !== '') linesBy.get(parentOf(path))?.push({ mode: DIRECTORY, name: baseOf(path), object })
  }
  return names
}

/** Returns the directories with all directories above them. */
async function changedDirectories(now: RootTree['entries'], before: RootTree['entries'], slices: Slices) {
  const changedPaths = new Set<string>()
  const add = (path: string) => {
    for (let at = path; !changedPaths.has(at); at = parentOf(at)) changedPaths.add(at)
  }
  let count = 0
  let knownLines = 0
  for (const [path, entry] of now) {
    if (++count % BATCH === 0) await slices.rest()
    const old = before.get(path)
    if (old) knownLines++
    const isSame = old === entry || (old?.blob === entry.blob && gitModeOf(old) === gitModeOf(entry))
    if (!isSame) add(parentOf(path))
  }
  for (const path of knownLines === before.size ? [] : before.keys()) {
    if (++count % BATCH === 0) await slices.rest()
    if (!now.has(path)) add(parentOf(path))
  }
  return changedPaths
}

/** The lines of these directories: all without `changed`. Trees that are written have no lines in those above them yet. */
async function linesOf(
  entries: RootTree['entries'],
  names: TreeNames,
  changedPaths: ReadonlySet<string> | undefined,
  slices: Slices,
): Promise<Map<string, TreeLine[]>> {
  const linesBy = new Map<string, TreeLine[]>([...(changedPaths ?? [])].map((path) => [path, []]))
  const linesIn = (directory: string): TreeLine[] => {
    const knownLines = linesBy.get(directory)
    if (knownLines) return knownLines
    const lines: TreeLine[] = []
    linesBy.set(directory, lines)
    if (directory !== '') linesIn(parentOf(directory))
    return lines
  }
  const parentNow = createParentOf()
  let count = 0
  for (const [path, entry] of entries) {
    if (++count % BATCH === 0) await slices.rest()
    const parent = parentNow(path)
    const mode = !changedPaths || changedPaths.has(parent) ? gitModeOf(entry) : undefined
    if (mode !== undefined) linesIn(parent).push({ mode, name: baseOf(path), object: entry.blob })
  }
  for (const [path, object] of changedPaths ? names : [])
    if (path !== '' && !changedPaths?.has(path) && changedPaths?.has(parentOf(path)))
      linesIn(parentOf(path)).push({ mode: DIRECTORY, name: baseOf(path), object })
  return linesBy
}

const baseOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

const gitModeOf = ({ kind, mode }: TreeEntry): string | undefined =>
  kind === 'directory' ? undefined : kind === 'symlink' ? '120000' : isProgram(mode) ? '100755' : '100644'

/** The names and the contents of objects of git, and the trees of a snapshot as such. */
import { createHash } from 'node:crypto'
import type { Slices } from '../../lib/time-slices.ts'
import type { ObjectKind } from './pack-file.ts'
import { isProgram, parentOf } from './manifest.ts'
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
  const keyed = lines.map((line) => ({ line, key: sortKey(line) }))
  keyed.sort((a, b) => (a.key < b.key ? -1 : 1))
  const bytes = Buffer.from(keyed.map(({ line }) => line.object).join(''), 'hex').toString('latin1')
  const text = keyed.map(({ line: { mode, name } }, at) => `${mode} ${name}\0${bytes.slice(at * 20, at * 20 + 20)}`)
  return Buffer.from(text.join(''), 'latin1')
}

/** Names that are handled before others get a turn. */
const BATCH = 256

/** Calls `add` with each tree, from below. Returns the name of the tree of the root; undefined without a file. */
export async function writeRootTree(
  { entries }: RootTree,
  add: (content: Buffer) => Promise<string>,
  slices: Slices,
): Promise<string | undefined> {
  const linesBy = new Map<string, Map<string, TreeLine>>()
  const linesIn = (directory: string): Map<string, TreeLine> => {
    const known = linesBy.get(directory)
    if (known) return known
    const lines = new Map<string, TreeLine>()
    linesBy.set(directory, lines)
    if (directory !== '') linesIn(parentOf(directory))
    return lines
  }
  let count = 0
  for (const [path, entry] of entries) {
    if (++count % BATCH === 0) await slices.rest()
    const mode = gitModeOf(entry)
    if (mode === undefined) continue
    const name = path.slice(path.lastIndexOf('/') + 1)
    linesIn(parentOf(path)).set(name, { mode, name, object: entry.blob })
  }
  if (linesBy.size === 0) return undefined
  // What is in a directory has a longer path.
  for (const [path, lines] of [...linesBy].sort(([a], [b]) => b.length - a.length)) {
    await slices.rest()
    const object = await add(treeContent([...lines.values()]))
    if (path === '') return object
    const name = path.slice(path.lastIndexOf('/') + 1)
    linesIn(parentOf(path)).set(name, { mode: DIRECTORY, name, object })
  }
  return undefined
}

const gitModeOf = ({ kind, mode }: TreeEntry): string | undefined =>
  kind === 'directory' ? undefined : kind === 'symlink' ? '120000' : isProgram(mode) ? '100755' : '100644'

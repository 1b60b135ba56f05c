/** What differs between two snapshots: files with the numbers of their lines, and patches of one page of them. */
import type { FileDifference } from '../git/parse-diff.ts'
import { parseDifferences } from '../git/parse-diff.ts'
import type { GitStore } from './git-store.ts'
import { Problem } from '../../contract/problem.ts'

export type Totals = { readonly files: number; readonly added: number; readonly removed: number }

/**
 * Files that were renamed and changed are looked for among so many that are gone, and as many that are new: git compares the
 * content of each with each. Those that were only renamed, or only moved, are found among any number.
 */
const MAX_COMPARED = 100

const OPTIONS = ['--no-ext-diff', '--no-textconv', '--no-color', '-r', '-M', `-l${MAX_COMPARED}`, '--full-index']

export type Commits = readonly [from: string, to: string]

/** The range has all files if there are no paths. */
export type DiffRange = { readonly commits: Commits; readonly paths: readonly string[] }

/** Returns the differences in the order of `patchesOf`. */
export async function differences(store: GitStore, range: DiffRange, signal?: AbortSignal) {
  const output = await store.run(
    ['diff-tree', ...OPTIONS, '--raw', '--numstat', '-z', ...endsOf(range)],
    undefined,
    signal,
  )
  return await parseDifferences(output.toString('latin1'))
}

/** The manifest of a snapshot is left out. */
const endsOf = ({ commits, paths }: DiffRange) => [...commits, '--', ...(paths.length > 0 ? paths : ['files'])]

export function totalsOf(files: readonly FileDifference[]): Totals {
  const sum = (of: (file: FileDifference) => number | undefined) =>
    files.reduce((total, file) => total + (of(file) ?? 0), 0)
  return { files: files.length, added: sum(({ added }) => added), removed: sum(({ removed }) => removed) }
}

/** What waits for the totals is not worth more, in milliseconds. */
const COUNT_MS = 10_000

/** Returns undefined if counting takes too long, or there are too many files. Throws a `Problem` for what cannot be read. */
export async function totalsBetween(git: GitStore, commits: Commits): Promise<Totals | undefined> {
  try {
    return totalsOf(await differences(git, { commits, paths: [] }, AbortSignal.timeout(COUNT_MS)))
  } catch (error) {
    if (error instanceof Problem) throw error
    return undefined
  }
}

/** A longer patch is cut. */
const MAX_PATCH_BYTES = 256 * 1024
/** The patches of one page. */
const MAX_PAGE_BYTES = 8 * 1024 ** 2

export type Patch = { readonly text: string; readonly isCut: boolean }

/** `all`: the differences of the range. */
type PatchPage = { readonly all: readonly FileDifference[]; readonly first: number; readonly count: number }

/**
 * The patches of the files from `first`, in their order: of `count` files, or of fewer if they are long. Stops git when it has
 * them.
 */
export async function patchesOf(
  store: GitStore,
  range: DiffRange,
  { all, first, count }: PatchPage,
  signal?: AbortSignal,
): Promise<readonly Patch[]> {
  const signals = [store.limit(), ...(signal ? [signal] : [])]
  const git = store.start(['diff-tree', ...OPTIONS, '-p', ...endsOf(range)], signals)
  git.stdin.end()
  const patches: { lines: Buffer[]; size: number }[] = []
  const owners = all.flatMap(({ patches: count }, index) => Array.from({ length: count }, () => index)).values()
  let at = -1
  let isOver = false
  let total = 0
  let isHeader = false
  for await (const line of linesOf(git.stdout)) {
    // Lines of a file begin with a space, + or -.
    if (line.subarray(0, HEADER.length).equals(HEADER)) at = owners.next().value ?? all.length
    if (at >= first + count || (total > MAX_PAGE_BYTES && at > first + patches.length - 1)) {
      isOver = true
      git.kill()
      break
    }
    if (at < first) continue
    isHeader = line.subarray(0, HEADER.length).equals(HEADER) || (isHeader && line[0] !== HUNK)
    const shownLine = isHeader ? withoutRoot(line) : line
    const patch = (patches[at - first] ??= { lines: [], size: 0 })
    patch.size += line.length
    if (patch.size > MAX_PATCH_BYTES) continue
    patch.lines.push(shownLine)
    total += line.length
  }
  if (!isOver) await git.ended
  return patches.map(({ lines, size }) => ({ text: Buffer.concat(lines).toString(), isCut: size > MAX_PATCH_BYTES }))
}

const HEADER = Buffer.from('diff --git ')
/** `@`, which the first line of the content begins with. */
const HUNK = 0x40

/** Clients know nothing of the directories of the store. */
const withoutRoot = (line: Buffer) =>
  Buffer.from(
    line.toString('latin1').replace(/((?:^| )(?:"?[ab]\/|(?:from|to) "?))files\/[0-9a-f]{16}\//g, '$1'),
    'latin1',
  )

/** A longer line comes in parts, which begin as no header does: after a mark. */
const MAX_LINE_BYTES = 1024 ** 2

async function* linesOf(stream: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0)
  let isInside = false
  for await (const chunk of stream) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
    rest = Buffer.concat([rest, chunk as Buffer])
    let start = 0
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, start)) {
      if (!isInside) yield rest.subarray(start, end + 1)
      isInside = false
      start = end + 1
    }
    rest = Buffer.from(rest.subarray(start))
    if (rest.length <= MAX_LINE_BYTES) continue
    // The rest of such a line is left out; its patch is cut before.
    if (!isInside) yield rest
    isInside = true
    rest = Buffer.alloc(0)
  }
  if (rest.length > 0 && !isInside) yield rest
}

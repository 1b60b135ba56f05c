/** One page of the files that differ from a commit, with their patches. */
import type { GitDiff } from '../../contract/git.ts'
import type { GitCall, GitOutput } from './run-git.ts'
import type { RawChange } from './parse-diff.ts'
import { decodePath, isText, parseDifferences, parseRaw, splitPatches, toFileDiff } from './parse-diff.ts'

export type Git = (args: readonly string[], options?: Pick<GitCall, 'keepBytes' | 'input'>) => Promise<GitOutput>

type PageQuery = {
  /** A commit or a tree. */
  readonly base: string
  readonly start: number
  readonly limit: number
  readonly redact: (text: string) => string
}

/** The size of the patches of one page; the next page continues after the last file that is complete. */
const MAX_PAGE_BYTES = 8 * 1024 ** 2
const MAX_PATCH_CHARS = 1024 ** 2
/** The size of the names of one page, which are arguments of a program. */
const MAX_NAME_BYTES = 256 * 1024

const DIFF = [
  'diff',
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--submodule=short',
  '--ignore-submodules=dirty',
  '--find-renames',
  '--full-index',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--raw',
  '-z',
]

/** `next`: the position of the first file of the next page. */
export async function readDiffPage(
  git: Git,
  { base, start, limit, redact }: PageQuery,
): Promise<{ items: GitDiff['items']; next: number | undefined }> {
  const { stdout } = await git([...DIFF, '--numstat', '--end-of-options', base, '--'])
  const changes = await parseDifferences(stdout.toString('latin1'))
  const page = fitting(changes.slice(start, start + limit))
  const { texts, complete } = await patchesOf(git, base, page)
  const showPath = (path: string) => redact(decodePath(path))
  const items = page.slice(0, complete).map((change) => {
    const text = texts.get(change.path)
    return toFileDiff(change, showPath, text === undefined ? undefined : shortenPatch(text, redact))
  })
  const next = start + items.length
  return { items, next: next < changes.length ? next : undefined }
}

function fitting<T extends RawChange>(changes: readonly T[]): readonly T[] {
  let bytes = 0
  const end = changes.findIndex(({ path, oldPath = '' }, i) => {
    bytes += path.length + oldPath.length
    return bytes > MAX_NAME_BYTES && i > 0
  })
  return end < 0 ? changes : changes.slice(0, end)
}

type Patches = {
  readonly texts: ReadonlyMap<string, string>
  /** How many of the files have all that was asked for. The first one always counts, also if it is cut off. */
  readonly complete: number
}

async function patchesOf(git: Git, base: string, page: readonly RawChange[]): Promise<Patches> {
  // Arguments of programs are text.
  const askedChanges = page.filter(({ path, oldPath = '' }) => isText(path) && isText(oldPath))
  if (askedChanges.length === 0) return { texts: new Map(), complete: page.length }
  const names = askedChanges.flatMap(({ path, oldPath }) =>
    [path, oldPath].filter((name) => name !== undefined).map(decodePath),
  )
  const { stdout, isCut } = await git([...DIFF, '--patch', '--end-of-options', base, '--', ...names], {
    keepBytes: MAX_PAGE_BYTES,
  })
  const { changes, rest } = await parseRaw(stdout.toString('latin1'))
  const foundPatches = splitPatches(rest)
  const texts = new Map<string, string>()
  let at = 0
  for (const { path, patches } of changes) {
    if (patches > 0 && at < foundPatches.length) texts.set(path, foundPatches.slice(at, at + patches).join(''))
    at += patches
  }
  if (!isCut) return { texts, complete: page.length }
  // A patch may be cut off where the output ends.
  const last = [...texts.keys()].at(-1)
  const cutAt = page.findIndex(({ path }) => path === last)
  return { texts, complete: Math.max(1, cutAt) }
}

function shortenPatch(patch: string, redact: (text: string) => string) {
  const isCut = patch.length > MAX_PATCH_CHARS
  return { text: redact(decodePath(patch)).slice(0, isCut ? MAX_PATCH_CHARS : undefined), isCut }
}

/** One page of the files that differ from a commit, with their patches. */
import type { GitDiff } from '../../contract/git.ts'
import type { GitCall, GitOutput } from './run-git.ts'
import type { Counts, RawChange } from './parse-diff.ts'
import { decoded, isText, parseNumstat, parseRaw, splitPatches } from './parse-diff.ts'

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
  const { changes, rest } = parseRaw(stdout.toString('latin1'))
  const counts = parseNumstat(rest)
  const page = fitting(changes.slice(start, start + limit))
  const patches = await patchesOf(git, base, page)
  const shown = page.slice(0, patches.complete)
  const items = shown.map((change) => itemOf(change, counts.get(change.path), patches.texts.get(change.path), redact))
  const next = start + items.length
  return { items, next: next < changes.length ? next : undefined }
}

function fitting(changes: readonly RawChange[]): readonly RawChange[] {
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
  const asked = page.filter(({ path, oldPath = '' }) => isText(path) && isText(oldPath))
  if (asked.length === 0) return { texts: new Map(), complete: page.length }
  const names = asked.flatMap(({ path, oldPath }) => [path, oldPath].filter((name) => name !== undefined).map(decoded))
  const { stdout, isCut } = await git([...DIFF, '--patch', '--end-of-options', base, '--', ...names], {
    keepBytes: MAX_PAGE_BYTES,
  })
  const { changes, rest } = parseRaw(stdout.toString('latin1'))
  const found = splitPatches(rest)
  const texts = new Map<string, string>()
  let at = 0
  for (const { path, patches } of changes) {
    if (patches > 0 && at < found.length) texts.set(path, found.slice(at, at + patches).join(''))
    at += patches
  }
  if (!isCut) return { texts, complete: page.length }
  // Where the output ends, a patch may be cut off.
  const last = [...texts.keys()].at(-1)
  const cut = page.findIndex(({ path }) => path === last)
  return { texts, complete: Math.max(1, cut) }
}

function itemOf(
  { path, oldPath, change, oldMode, newMode }: RawChange,
  counts: Counts | undefined,
  patch: string | undefined,
  redact: (text: string) => string,
): GitDiff['items'][number] {
  const isLong = patch !== undefined && patch.length > MAX_PATCH_CHARS
  return {
    path: redact(decoded(path)),
    ...(oldPath !== undefined && { old_path: redact(decoded(oldPath)) }),
    change,
    old_mode: oldMode,
    new_mode: newMode,
    // A conflict without a file has no counts.
    added: counts ? counts.added : 0,
    removed: counts ? counts.removed : 0,
    ...(patch !== undefined && { patch: redact(decoded(patch)).slice(0, isLong ? MAX_PATCH_CHARS : undefined) }),
    ...(isLong && { truncated: true }),
  }
}

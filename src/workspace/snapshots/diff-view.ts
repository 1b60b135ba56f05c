/** The differences between two moments of a conversation, page by page, as clients see them. */
import { realpath } from 'node:fs/promises'
import type { DiffPage, GetDiff } from '../../contract/diff.ts'
import { Problem } from '../../contract/problem.ts'
import { toFileDiff } from '../git/parse-diff.ts'
import type { Commits } from './diff-snapshots.ts'
import { differences, patchesOf, totalsOf } from './diff-snapshots.ts'
import { rootNameOf } from './manifest.ts'
import type { WorkspaceSnapshots } from './snapshots.ts'
import type { RootPaths } from './root-keys.ts'
import { givenPath, shownPath } from './tree-entry.ts'

export type DiffDeps = {
  readonly snapshots: WorkspaceSnapshots
  readonly redact: (text: string) => string
  /** The seq at which the last run began; 0 if there was none. */
  readonly runStart: () => Promise<number>
}

/** Throws a `Problem` if there is no snapshot of one of the moments. */
export async function viewDiff(deps: DiffDeps, query: GetDiff, signal: AbortSignal): Promise<DiffPage> {
  const { snapshots, redact } = deps
  const { commits, first } = query.page_id === undefined ? await begin(deps, query) : readPageId(query.page_id)
  const roots = await snapshots.roots()
  // A directory that the conversation no longer has is not shown.
  const paths = query.path === undefined ? roots.map(gitRootOf) : [await gitPathOf(query.path, roots)]
  const range = { commits, paths }
  const fail = (error: unknown) => {
    signal.throwIfAborted()
    if (!(error instanceof Problem)) throw tooMuch(error)
    throw query.page_id === undefined ? error : endedPage(error)
  }
  const all = await differences(snapshots.git, range, signal).catch(fail)
  const count = Math.max(Math.min(query.limit, all.length - first), 0)
  const patches =
    query.patch && count > 0
      ? await patchesOf(snapshots.git, range, { all, first, count }, signal).catch(fail)
      : undefined
  const shownDifferences = all.slice(first, first + Math.max(patches?.length ?? count, 1))
  const next = first + shownDifferences.length
  return {
    ...totalsOf(all),
    items: shownDifferences.map((file, index) => {
      const patch = patches?.[index]
      const redactedPatch = patch && { ...patch, text: redact(patch.text) }
      return toFileDiff(file, (path) => shownIn(path, { roots, redact }), redactedPatch)
    }),
    next_page_id: next < all.length ? `${commits.join('..')}:${next}` : null,
  }
}

async function begin({ snapshots, runStart }: DiffDeps, { from, to }: GetDiff) {
  const start = from === 'start' ? 0 : from === 'run' ? Math.max((await runStart()) - 1, 0) : Number(from)
  const end = to === 'now' ? to : Number(to)
  const ends = [await snapshots.commitFor(start), await snapshots.commitFor(end)] as const
  return { commits: ends, first: 0 }
}

/** The form of it was checked. */
function readPageId(pageId: string): { commits: Commits; first: number } {
  const [range = '', position] = pageId.split(':')
  const [from = '', to = ''] = range.split('..')
  return { commits: [from, to], first: Number(position) }
}

const endedPage = (cause: unknown) =>
  new Problem('snapshot_not_found', 'The snapshots of this page_id do not exist any more; begin without one.', {
    cause,
  })

/** Git was ended, and has not failed. */
const tooMuch = (cause: unknown) =>
  new Problem('git_failed', 'Git takes too long to compare these files, or they are too many: name a path.', { cause })

const gitRootOf = ({ key }: RootPaths) => `files/${rootNameOf(key)}`

/** The path in the tree of git. */
async function gitPathOf(path: string, roots: readonly RootPaths[]): Promise<string> {
  const real = path.startsWith('/') ? await realpath(path).catch(() => path) : path
  const isIn = ({ shown }: RootPaths) => shown !== '' && (real === shown || real.startsWith(`${shown}/`))
  const root = roots.find(real.startsWith('/') ? isIn : ({ shown }) => shown === '')
  if (!root) throw new Problem('file_not_found', `${path} is neither in the workdir nor in an additional directory.`)
  const inner = root.shown === '' ? real : real.slice(root.shown.length + 1)
  const names = inner.split('/').filter((name) => name !== '' && name !== '.')
  if (names.includes('..'))
    throw new Problem('file_not_found', `${path} contains "..", which leads out of the workdir.`)
  return [gitRootOf(root), ...names.map(givenPath)].join('/')
}

type Showing = Pick<DiffDeps, 'redact'> & { readonly roots: readonly RootPaths[] }

/** `files/<root>/<path>`. */
function shownIn(path: string, { roots, redact }: Showing): string {
  const [, name = ''] = path.split('/', 2)
  const inner = shownPath(path.slice('files/'.length + name.length + 1))
  const root = roots.find(({ key }) => rootNameOf(key) === name)
  return redact(root === undefined || root.shown === '' ? inner : `${root.shown}/${inner}`)
}

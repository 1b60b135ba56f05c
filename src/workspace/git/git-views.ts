/** The user's own git repository in a workdir, as clients see it: read only, without executing anything that it names. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { GetGitDiff, GetGitFile, GetGitStatus, GitDiff, GitStatus, GitStatusEntry } from '../../contract/git.ts'
import { Problem } from '../../contract/problem.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { Queue } from '../../lib/queue.ts'
import { borrowRepository } from './borrowed-repository.ts'
import type { Git } from './diff-page.ts'
import { readDiffPage } from './diff-page.ts'
import { parseStatus } from './parse-status.ts'
import type { GitAccess } from './run-git.ts'
import { GitFailure, runGit } from './run-git.ts'

export type GitViewsDeps = {
  readonly git: GitAccess
  /** The server's own directory for the conversation. */
  readonly stateDirectory: string
  readonly inJail: <T>(signal: AbortSignal, work: (jail: Jail) => Promise<T>) => Promise<T>
  readonly redact: (text: string) => string
}

/** Each method throws a `Problem`, also if git fails. */
export class GitViews {
  readonly #deps: GitViewsDeps
  /** Views are read one at a time: all use the same directory. */
  readonly #queue = new Queue({ limit: 1 })

  constructor(deps: GitViewsDeps) {
    this.#deps = deps
  }

  async status({ limit, page_id: pageId }: GetGitStatus, signal: AbortSignal): Promise<GitStatus> {
    const { redact } = this.#deps
    const start = Number(pageId ?? 0)
    return await this.#inRepository(signal, async (git) => {
      const { stdout } = await git(STATUS)
      const { commit, branch, items: all } = parseStatus(stdout)
      const items = all.slice(start, start + limit).map((entry) => redactedEntry(entry, redact))
      const end = start + limit
      const next = end < all.length ? String(end) : null
      return { commit, branch: branch === null ? null : redact(branch), items, next_page_id: next }
    })
  }

  /** `known`: the base, instead of that of the query; without `commit` there was none. */
  async diff(
    query: GetGitDiff,
    signal: AbortSignal,
    knownBase?: { readonly commit: string | undefined },
  ): Promise<GitDiff> {
    const start = Number(query.page_id ?? 0)
    return await this.#inRepository(signal, async (git) => {
      const base = await baseOf(git, query, knownBase)
      const { items, next } = await readDiffPage(git, {
        // The files are compared with nothing before the first commit.
        base: base ?? (await emptyTree(git)),
        start,
        limit: query.limit,
        redact: this.#deps.redact,
      })
      return {
        base_commit: base ?? null,
        items,
        next_page_id: next === undefined ? null : String(next),
      }
    })
  }

  /** Returns a file of a commit, unchanged, and the id of its content. */
  async file({ rev, path }: GetGitFile, signal: AbortSignal): Promise<{ content: Buffer; version: string }> {
    return await this.#inRepository(signal, async (git) => {
      const commit = await commitOf(git, rev)
      if (commit === undefined)
        throw new Problem(
          'revision_not_found',
          'The repository has no such commit. Name a branch, a tag or the id of a commit.',
        )
      const { stdout } = await git(['ls-tree', '-z', '--full-tree', commit, '--', path])
      const [, mode = '', type, blob = ''] = /^(\d+) (\w+) ([0-9a-f]+)\t/.exec(stdout.toString('latin1')) ?? []
      if (type === undefined) throw new Problem('file_not_found', 'The commit has no file at this path.')
      if (type !== 'blob' || !mode.startsWith('100'))
        throw new Problem('not_a_file', 'The commit has a directory, a link or a submodule at this path.')
      return { content: (await git(['cat-file', 'blob', blob])).stdout, version: blob }
    })
  }

  async #inRepository<T>(signal: AbortSignal, work: (git: Git) => Promise<T>): Promise<T> {
    const { git: access, stateDirectory, inJail, redact } = this.#deps
    if (access.program() === undefined)
      throw new Problem('git_unavailable', 'This server has no git. Ask the operator to install it.')
    try {
      return await this.#queue.run(
        () =>
          inJail(signal, async (jail) => {
            const gitDir = join(stateDirectory, 'git', 'view')
            const call = { workdir: jail.root.path, gitDir, privateDir: join(stateDirectory, 'git'), signal }
            const git: Git = (args, options) => runGit(access, args, { ...call, ...options })
            try {
              await borrowRepository(jail, gitDir, async (args) => (await git(args)).stdout)
              return await work(git)
            } finally {
              await rm(gitDir, { recursive: true, force: true })
            }
          }),
        { signal },
      )
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      const errorText = redact(error.message).replaceAll(join(stateDirectory, 'git', 'view'), '.git')
      const why = errorText.replaceAll(stateDirectory, 'the server')
      throw new Problem('git_failed', `Git could not read the repository: ${why}`, { cause: error })
    }
  }
}

/** Git enters no submodule: it would read the settings of that repository. */
const STATUS = [
  'status',
  '--porcelain=v2',
  '--branch',
  '-z',
  '--untracked-files=all',
  '--ignore-submodules=dirty',
  '--find-renames',
  '--no-ahead-behind',
]

function redactedEntry(entry: GitStatusEntry, redact: (text: string) => string): GitStatusEntry {
  const { path, old_path: oldPath } = entry
  return { ...entry, path: redact(path), ...(oldPath !== undefined && { old_path: redact(oldPath) }) }
}

/** Returns undefined if the revision names no commit. */
async function commitOf(git: Git, rev: string): Promise<string | undefined> {
  try {
    const { stdout } = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${rev}^{commit}`])
    return /^[0-9a-f]+$/m.exec(stdout.toString())?.[0]
  } catch (error) {
    if (error instanceof GitFailure && NO_COMMIT.test(error.message)) return undefined
    throw error
  }
}

const MAIN_BRANCHES = [
  'refs/remotes/origin/HEAD',
  'refs/remotes/origin/main',
  'refs/remotes/origin/master',
  'refs/heads/main',
  'refs/heads/master',
]

/** Git says nothing about a missing revision with --quiet, and something about a wrong one. */
const NO_COMMIT = /^Git exited with code|^error: |^fatal: (?!not a git repository)/

async function baseOf(git: Git, { base }: GetGitDiff, knownBase: { readonly commit: string | undefined } | undefined) {
  if (knownBase?.commit !== undefined) {
    const commit = await commitOf(git, knownBase.commit)
    if (commit === undefined)
      throw new Problem(
        'revision_not_found',
        'The repository no longer has the commit that HEAD was at. Use base=head.',
      )
    return commit
  }
  if (knownBase) return undefined
  return await (base === 'head' ? commitOf(git, 'HEAD') : mergeBase(git))
}

async function mergeBase(git: Git): Promise<string> {
  const head = await commitOf(git, 'HEAD')
  for (const name of head === undefined ? [] : MAIN_BRANCHES) {
    const main = await commitOf(git, name)
    if (main === undefined) continue
    const common = await mergeBaseWith(git, main)
    if (common !== undefined) return common
  }
  throw new Problem('revision_not_found', 'The repository has no main branch to compare with. Use base=head.')
}

/** Git fails without a word if the histories have nothing in common. */
async function mergeBaseWith(git: Git, main: string): Promise<string | undefined> {
  try {
    return (await git(['merge-base', 'HEAD', main])).stdout.toString().trim()
  } catch (error) {
    if (error instanceof GitFailure && error.message === 'Git exited with code 1.') return undefined
    throw error
  }
}

const emptyTree = async (git: Git) => (await git(['hash-object', '-t', 'tree', '--stdin'])).stdout.toString().trim()

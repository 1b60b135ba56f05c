/**
 * Whether git by itself may run a program in a directory: by the configuration of its repository, by a hook, or by those
 * of its submodules. It reads files only, and never starts git. Synchronous: all that it reads is bounded.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { codeOf } from '../../lib/error-code.ts'
import { realPath } from '../links/real-path.ts'
import { checkConfig } from './harmless-config.ts'
import { submodulesIn } from './index-file.ts'

const MAX_CONFIG_BYTES = 256 * 1024
const MAX_POINTER_BYTES = 4096
/** An index of some 160,000 files, which takes some 20 ms to read. */
const MAX_INDEX_BYTES = 16 * 1024 * 1024
/** The limit includes submodules. */
const MAX_REPOSITORIES = 20
const MAX_PARENTS = 64

/** The hooks that run when git only reads: it may store what it has seen of files. */
const HOOKS = ['post-index-change']

/** The end of a sentence that begins with "git"; undefined if git certainly runs nothing else there. */
export function programOfGit(directory: string): string | undefined {
  try {
    new Repositories(directory).enter()
    return undefined
  } catch (error) {
    if (error instanceof MayRun) return error.message
    return 'cannot be checked there'
  }
}

class MayRun extends Error {}

class Repositories {
  readonly #workdir: string
  #repositoriesLeft = MAX_REPOSITORIES

  constructor(workdir: string) {
    this.#workdir = workdir
  }

  /** Looks for a repository, as git does, in the directory and in each one above it. */
  enter(): void {
    let directory = this.#workdir
    for (let count = 0; count < MAX_PARENTS; count += 1) {
      if (this.#enterAt(directory)) return
      const parent = dirname(directory)
      if (parent === directory) return
      directory = parent
    }
    throw new MayRun('may find a repository above too many directories')
  }

  /** Returns true if git certainly looks no further. What it may leave out is checked, too. */
  #enterAt(directory: string): boolean {
    const dotGit = join(directory, '.git')
    const isFound = exists(dotGit) && this.#check(pointedAt(dotGit), directory)
    // The files of a directory can be a repository: then an edit of a file `config` changes what git runs.
    if (exists(join(directory, 'HEAD')) && BARE.some((name) => exists(join(directory, name))))
      throw new MayRun('finds a repository that is not in a directory .git')
    return isFound
  }

  #check(gitDirectory: string, worktree: string): boolean {
    this.#repositoriesLeft -= 1
    if (this.#repositoriesLeft < 0) throw new MayRun('finds too many repositories')
    const common = commonOf(gitDirectory)
    for (const each of [gitDirectory, common]) this.#refuseOpen(each)
    this.#refuseForeign(gitDirectory, common, worktree)
    for (const file of [join(common, 'config'), join(gitDirectory, 'config.worktree')])
      checkFile(file, { gitDirectory, worktree })
    refuseHooks(join(common, 'hooks'))
    for (const path of submodulesOf(join(gitDirectory, 'index'))) {
      const submodule = join(worktree, path)
      if (exists(join(submodule, '.git'))) this.#check(pointedAt(join(submodule, '.git')), submodule)
    }
    return exists(join(gitDirectory, 'HEAD'))
  }

  /** What git shows must be from the workdir, or from a repository that names the workdir as one of its work trees. */
  #refuseForeign(gitDirectory: string, common: string, worktree: string): void {
    const isOutside = (directory: string) => relative(this.#workdir, realOf(directory)).split('/')[0] === '..'
    if (isOutside(gitDirectory)) {
      if (gitDirectory !== join(worktree, '.git') && !namesWorkTree(gitDirectory, worktree))
        throw new MayRun('finds a repository outside of the workdir, which does not name the workdir')
      return
    }
    if (isOutside(common)) throw new MayRun('takes what it shows from outside of the workdir')
    for (const directory of new Set([gitDirectory, common])) refuseLinks(directory)
  }

  /** Edits of a file below `.git` need a permission, and those outside of the workdir, too. */
  #refuseOpen(directory: string): void {
    const below = relative(this.#workdir, realOf(directory)).split('/')
    if (below[0] !== '..' && !below.includes('.git'))
      throw new MayRun('finds a repository that is not in a directory .git')
  }
}

const BARE = ['objects', 'refs', 'commondir']

/** Returns the line that the file consists of. Empty if git may read another one: it removes a carriage return at the end. */
function lineOf(bytes: Buffer): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  const line = /^([^\0-\x1f\x7f\ufffd]*[^\0-\x20\x7f\ufffd])\n?$/.exec(bytes.toString())?.[1]
  return line ?? ''
}

/** `.git` may be a file that names the directory. */
function pointedAt(dotGit: string): string {
  const text = read(dotGit, MAX_POINTER_BYTES)
  if (text === 'directory') return dotGit
  const path = /^gitdir: (.+)$/s.exec(text ? lineOf(text) : '')?.[1]
  if (path === undefined) throw new MayRun('finds a .git that cannot be read')
  return resolve(dirname(dotGit), path)
}

/** Several work trees have one configuration. */
function commonOf(gitDirectory: string): string {
  const text = read(join(gitDirectory, 'commondir'), MAX_POINTER_BYTES)
  if (text === undefined) return gitDirectory
  const path = text === 'directory' ? '' : lineOf(text)
  if (path === '') throw new MayRun('finds a commondir that cannot be read')
  return resolve(gitDirectory, path)
}

/** Returns true if the git directory of a work tree or of a submodule names that work tree. */
function namesWorkTree(gitDirectory: string, worktree: string): boolean {
  const text = read(join(gitDirectory, 'gitdir'), MAX_POINTER_BYTES)
  const pointer = text === undefined || text === 'directory' ? '' : lineOf(text)
  if (pointer !== '' && resolve(gitDirectory, pointer) === join(worktree, '.git')) return true
  const config = read(join(gitDirectory, 'config'), MAX_CONFIG_BYTES)
  const checkedConfig = config === undefined || config === 'directory' ? '' : checkConfig(config.toString('latin1'))
  return (
    typeof checkedConfig !== 'string' &&
    checkedConfig.worktrees.some((path) => resolve(gitDirectory, path) === worktree)
  )
}

/** Git shows lines of these in what it says about a rebase, and in errors. */
const SHOWN = [
  '',
  'info',
  'objects',
  'objects/info',
  'objects/pack',
  'rebase-apply',
  'rebase-merge',
  'refs',
  'sequencer',
]

/** A link in them may lead outside of the workdir, and so may the list of other places for objects. */
function refuseLinks(gitDirectory: string): void {
  for (const name of SHOWN) {
    const directory = join(gitDirectory, name)
    if (!exists(directory)) continue
    const links = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink())
    if (links.some((entry) => name !== '' || entry.name !== 'hooks'))
      throw new MayRun('finds links in its own files, which may lead outside of the workdir')
  }
  if (exists(join(gitDirectory, 'objects/info/alternates')))
    throw new MayRun('takes what it shows from another repository')
}

function checkFile(file: string, at: { readonly gitDirectory: string; readonly worktree: string }): void {
  const text = read(file, MAX_CONFIG_BYTES)
  if (text === undefined) return
  const checkedConfig = text === 'directory' ? 'cannot be read' : checkConfig(text.toString('latin1'))
  if (typeof checkedConfig === 'string') throw new MayRun(`has a configuration that ${checkedConfig}`)
  if (checkedConfig.worktrees.some((path) => resolve(at.gitDirectory, path) !== at.worktree))
    throw new MayRun('has a configuration that names another work tree')
  // A line that is not a commit is shown in an error: only the file with the usual name is harmless, unless it is a link.
  if (checkedConfig.files.some((path) => path !== IGNORED_COMMITS || isLink(join(at.worktree, path))))
    throw new MayRun('has a configuration that sets blame.ignoreRevsFile, which may show another file')
  for (const path of checkedConfig.hooks) {
    if (!/^[\w./-]+$/.test(path))
      throw new MayRun('has a configuration that sets core.hookspath, which may run a program')
    for (const base of [at.gitDirectory, at.worktree]) refuseHooks(resolve(base, path))
  }
}

const IGNORED_COMMITS = '.git-blame-ignore-revs'

function refuseHooks(directory: string): void {
  const hook = HOOKS.find((name) => exists(join(directory, name)))
  if (hook !== undefined) throw new MayRun(`has a hook ${hook}, which is a program`)
}

function submodulesOf(file: string): readonly string[] {
  const bytes = read(file, MAX_INDEX_BYTES)
  if (bytes === undefined) return []
  const paths = bytes === 'directory' ? undefined : submodulesIn(bytes)
  if (!paths) throw new MayRun('has an index that cannot be read with certainty')
  return paths
}

/** Throws if it does not exist. */
function realOf(directory: string): string {
  const real = exists(directory) ? realPath(directory) : undefined
  if (real === undefined) throw new MayRun('cannot be checked there')
  return real
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}

/** Returns undefined if the file does not exist. Does not follow links or wait for pipes. Throws if the file is too long. */
function read(path: string, maxBytes: number): Buffer | 'directory' | undefined {
  const descriptor = open(path)
  if (descriptor === undefined) return undefined
  try {
    const stats = fstatSync(descriptor)
    if (stats.isDirectory()) return 'directory'
    if (!stats.isFile() || stats.size > maxBytes) throw new MayRun('finds a file that is too large')
    const bytes = Buffer.alloc(stats.size)
    let length = 0
    for (let count = 1; count > 0 && length < bytes.length; length += count)
      count = readSync(descriptor, bytes, length, bytes.length - length, null)
    return bytes.subarray(0, length)
  } finally {
    closeSync(descriptor)
  }
}

function open(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}

/** Builds the executable of a commit with the packages that its lock file names, and keeps it for later comparisons. */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const BUILT = 'dist/agent-server'
const CACHE = join(ROOT, 'node_modules/.cache/bench')

/** Returns a copy, which a build during the comparison does not replace. */
export function executableOfWorkingTree(): string {
  buildIn(ROOT)
  const copy = join(mkdtempSync(join(tmpdir(), 'bench-own-')), 'agent-server')
  copyFileSync(join(ROOT, BUILT), copy)
  return copy
}

/** Returns its hash. Throws when the repository does not contain it. */
export function commitOf(ref: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`).trim()
  } catch (cause) {
    throw new Error(`This clone has no commit ${ref}. Name another one, or run: git fetch --unshallow`, { cause })
  }
}

/** Returns the path of the executable. */
export function executableOf(commit: string): string {
  const executable = join(CACHE, commit, 'agent-server')
  if (existsSync(executable)) return executable
  const directory = mkdtempSync(join(tmpdir(), 'bench-build-'))
  try {
    checkOut(commit, directory)
    providePackages(directory)
    buildIn(directory)
    publish(join(directory, BUILT), executable)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return executable
}

/** Makes no worktree, which git would list until somebody removed it. */
function checkOut(commit: string, directory: string): void {
  const archive = join(directory, 'commit.tar')
  git('archive', '--output', archive, commit)
  execFileSync('tar', ['-xf', archive, '-C', directory])
  rmSync(archive)
}

/** Links to the packages of the working tree if the lock files are equal; otherwise installs them. */
function providePackages(directory: string): void {
  const lockIn = (root: string) => readFileSync(join(root, 'package-lock.json'), 'utf8')
  if (lockIn(directory) === lockIn(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  else npm(directory, 'ci', '--no-audit', '--no-fund')
}

const buildIn = (directory: string): void => npm(directory, 'run', '--silent', 'build')

/** Renamed when it is complete: an interrupted copy cannot be used. */
function publish(built: string, executable: string): void {
  mkdirSync(dirname(executable), { recursive: true })
  const unfinished = `${executable}.${process.pid}`
  copyFileSync(built, unfinished)
  renameSync(unfinished, executable)
}

const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })

function npm(directory: string, ...args: string[]): void {
  // The npm that runs this script exports the directory and the settings that it uses for this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name)))
  execFileSync('npm', args, { cwd: directory, env, stdio: ['ignore', 'ignore', 'inherit'] })
}

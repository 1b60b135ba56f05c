/**
 * The bare git repository that holds the snapshots of one conversation: the only file that runs git for them. Git is given
 * bytes and never a workdir, so nothing that a workdir contains (configuration, hooks, filters, attributes) has any effect.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import type { Readable, Writable } from 'node:stream'
import { Problem } from '../../contract/problem.ts'
import { codeOf, ignoreMissing } from '../../lib/error-code.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { HostEnvironment, startProcess } from '../../lib/start-process.ts'
import type { ChildProcess } from '../../lib/start-process.ts'
import { findGit } from '../git/run-git.ts'

/** Processor speed and disks differ; what takes longer has no end. */
const TIMEOUT_MS = 60_000
/** An answer is in memory as a whole. */
const MAX_OUTPUT_BYTES = 64 * 1024 ** 2
const MAX_ERROR_BYTES = 4096

const CONFIG = `[core]
\trepositoryformatversion = 0
\tbare = true
\thooksPath = /dev/null
\tcompression = 1
\tlogAllRefUpdates = false
\tsharedRepository = 0600
\tprotectNTFS = false
\tprotectHFS = false
[gc]
\tauto = 0
[pack]
\tthreads = 1
\twindowMemory = 64m
\twriteBitmaps = false
[repack]
\twriteBitmaps = false
[fastimport]
\tunpackLimit = 1
[protocol]
\tallow = never
[maintenance]
\tauto = false
`

/** The attributes override what a workdir says: a line ending, a filter or an encoding would change the bytes. */
const ATTRIBUTES = '* -text -ident -filter -working-tree-encoding !diff\n'

const LEFTOVER = /^(?:\.?tmp[-_].+|.+\.(?:lock|keep))$/
const ignoreNone = (error: unknown): string[] => ignoreMissing(error) ?? []

/** Throws a `Problem` if snapshots are wanted and there is no git. */
export function checkSnapshots(areWanted: boolean): void {
  if (areWanted && findGit() === undefined)
    throw new Problem(
      'invalid_request',
      'file_checkpointing needs git, and this server has none. Install git, or leave it out.',
    )
}

export class GitStore {
  readonly directory: string
  /** The program. */
  readonly git: string
  /** Returns a signal that is aborted when what begins now has had its time. */
  readonly limit: () => AbortSignal

  /** `directory` is made by the first `make`, and not its parents. */
  constructor(directory: string, git: string, limit = () => AbortSignal.timeout(TIMEOUT_MS)) {
    this.directory = directory
    this.git = git
    this.limit = limit
  }

  async exists(): Promise<boolean> {
    return await stat(join(this.directory, 'HEAD')).then(
      () => true,
      () => false,
    )
  }

  /** Makes what `git init` makes, without its templates. HEAD comes last: without it there is no store. */
  async make(): Promise<void> {
    if (await this.exists()) return
    for (const path of ['', 'objects', 'objects/pack', 'refs', 'refs/heads', 'refs/snapshots', 'info'])
      await makeDirectories(join(this.directory, path), 0o700)
    // Durable: an empty HEAD after a loss of power would be a store that git does not read.
    const write = (name: string, text: string) => replaceFile(join(this.directory, name), text)
    await write('config', CONFIG)
    await write('info/attributes', ATTRIBUTES)
    await write('HEAD', 'ref: refs/heads/none\n')
  }

  /**
   * Removes what a git or a server that was killed has left: locks would end all that come after, and no git removes a pack
   * without its index. Nothing else may write meanwhile.
   */
  async clean(): Promise<void> {
    for (const path of ['', 'refs/heads', 'refs/snapshots', 'objects', 'objects/pack'])
      for (const name of await readdir(join(this.directory, path)).catch(ignoreNone))
        if (LEFTOVER.test(name)) await rm(join(this.directory, path, name), { force: true })
    const packs = join(this.directory, 'objects/pack')
    const names = new Set(await readdir(packs).catch(ignoreNone))
    for (const name of names)
      if (name.endsWith('.pack') && !names.has(name.replace(/pack$/, 'idx')))
        await rm(join(packs, name), { force: true })
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true })
  }

  /** Rejects if git fails, takes too long or answers with more than 64 MiB. */
  async run(args: readonly string[], input?: string | Buffer, signal?: AbortSignal): Promise<Buffer> {
    const runningGit = this.start(args, [this.limit(), ...(signal ? [signal] : [])])
    runningGit.stdin.end(input)
    const parts: Buffer[] = []
    let length = 0
    for await (const chunk of runningGit.stdout) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
      const part = chunk as Buffer
      length += part.length
      if (length > MAX_OUTPUT_BYTES) runningGit.kill()
      else parts.push(part)
    }
    await runningGit.ended
    return Buffer.concat(parts)
  }

  /** Git has no limit but these signals: the caller knows how long it works with what git writes. */
  start(args: readonly string[], signals: AbortSignal[] = []): RunningGit {
    const child = startProcess(this.git, ['--git-dir=.', ...args], {
      cwd: this.directory,
      env: HostEnvironment.ownGit,
      stdio: ['pipe', 'pipe', 'pipe'],
      killSignal: 'SIGKILL',
      signal: AbortSignal.any(signals),
    })
    return new RunningGit(child, args[0] ?? '')
  }
}

/** These fail only if what they read is missing. */
const READS: ReadonlySet<string> = new Set(['cat-file', 'diff-tree', 'ls-tree', 'rev-parse'])

/** Snapshots can be removed while they are read. */
export const unreadable = (cause: unknown) =>
  new Problem(
    'snapshot_not_found',
    'The snapshot cannot be read: it was removed meanwhile, or the store of the snapshots is damaged. Read a later one, or remove all of them with DELETE snapshots.',
    { cause },
  )

export class RunningGit {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Rejects if it has failed. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess

  constructor(child: ChildProcess, name: string) {
    this.#child = child
    // oxlint-disable typescript/no-non-null-assertion -- they are pipes
    this.stdin = child.stdin!
    this.stdout = child.stdout!
    let errorText = ''
    child.stderr!.setEncoding('latin1').on('data', (text: string) => {
      if (errorText.length < MAX_ERROR_BYTES) errorText += text
    })
    // oxlint-enable typescript/no-non-null-assertion
    // It may end before it has read everything; its exit code says so.
    this.stdin.on('error', () => {})
    this.ended = new Promise((resolve, reject) => {
      // Git does not start without its directory.
      child.on('error', (error) => reject(codeOf(error) === 'ENOENT' ? unreadable(error) : error))
      child.on('close', (code, signal) => {
        if (code === 0) return resolve()
        const why = new Error(`git ${name} failed (${signal ?? code}): ${errorText.slice(0, MAX_ERROR_BYTES).trim()}`)
        reject(code !== null && READS.has(name) ? unreadable(why) : why)
      })
    })
    this.ended.catch(() => {})
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

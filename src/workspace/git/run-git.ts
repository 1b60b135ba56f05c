/**
 * Runs git on a workdir: the only file that does. Git gets a fixed environment, no network, and, where there is a
 * sandbox, a workdir that it cannot write to. It reads the settings of `gitDir` and of no other file: those of a workdir
 * name programs that git would execute.
 */
import type { Readable } from 'node:stream'
import { afterRunning } from '../../lib/bounded-wait.ts'
import { Queue } from '../../lib/queue.ts'
import { findProgram, HostEnvironment, killGroup, startProcess } from '../../lib/start-process.ts'
import type { ChildProcess } from '../../lib/start-process.ts'
import type { Launch, ShellLauncher } from '../../sandbox/launch.ts'

export type GitAccess = {
  readonly launcher: ShellLauncher
  /** Returns the path of git; undefined if it is not installed. */
  readonly program: () => string | undefined
  readonly limits?: GitLimits | undefined
}

export type GitLimits = { readonly timeoutMs: number; readonly outputBytes: number }

const DEFAULT_LIMITS: GitLimits = { timeoutMs: 5000, outputBytes: 64 * 1024 ** 2 }
const MAX_ERROR_BYTES = 4096

export type GitCall = {
  /** Absolute. */
  readonly workdir: string
  /** A directory of the server with the settings, which git only reads. */
  readonly gitDir: string
  /** A directory of the server for the home and the /tmp of a sandbox. */
  readonly privateDir: string
  readonly input?: Buffer | undefined
  /** Further output is dropped and git is ended. Default: too much output is a failure. */
  readonly keepBytes?: number | undefined
  readonly signal: AbortSignal
}

/** `isCut`: there was more. */
export type GitOutput = { readonly stdout: Buffer; readonly isCut: boolean }

/** What git says when it fails, or why it was ended. */
export class GitFailure extends Error {
  override readonly name = 'GitFailure'
}

/** Found in directories of the system only, where no agent can put a program. */
export const findGit = (): string | undefined => findProgram('git', HostEnvironment.plain.path)

/** All conversations share it, so that many requests cannot start as many processes. Workdirs take turns. */
const RUNNING = new Queue({ limit: 8 })

/** Resolves with what git writes. Rejects with a `GitFailure`, or the reason of the signal. */
export async function runGit(access: GitAccess, args: readonly string[], call: GitCall): Promise<GitOutput> {
  return await RUNNING.run(() => runNow(access, args, call), { key: call.workdir, signal: call.signal })
}

async function runNow(
  { launcher, program, limits = DEFAULT_LIMITS }: GitAccess,
  args: readonly string[],
  call: GitCall,
): Promise<GitOutput> {
  const git = program()
  const env = findProgram('env', HostEnvironment.plain.path)
  if (git === undefined || env === undefined) throw new GitFailure('git is not installed.')
  call.signal.throwIfAborted()
  const argv = [env, '-i', ...variablesFor(call), git, '--no-pager', '-C', call.workdir, ...args]
  await using launch = await launcher
    .launch(argv, {
      workdir: call.workdir,
      isWorkdirReadOnly: true,
      visible: [call.gitDir],
      privateDir: call.privateDir,
      network: { mode: launcher.isolatesNetwork ? 'none' : 'open', adopt: () => () => {} },
    })
    .catch((cause: unknown) => {
      throw new GitFailure(cause instanceof Error ? cause.message : 'git could not be started.', { cause })
    })
  // A listener does not receive an abort that came meanwhile.
  call.signal.throwIfAborted()
  return await outputOf(start(launch), call, limits)
}

/** All variables that git has. See git(1). */
function variablesFor({ workdir, gitDir }: GitCall): string[] {
  return Object.entries({
    PATH: HostEnvironment.plain.path,
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_DIR: gitDir,
    GIT_WORK_TREE: workdir,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: 'none',
  }).map(([name, value]) => `${name}=${value}`)
}

function start(launch: Launch): ChildProcess {
  const [file = '', ...args] = launch.argv
  return startProcess(file, args, {
    env: HostEnvironment.plain,
    cwd: launch.cwd,
    detached: true,
    // The fourth is where a shell reports; see `FIRST_EXTRA_DESCRIPTOR`.
    stdio: ['pipe', 'pipe', 'pipe', 'ignore', ...launch.descriptors],
  })
}

async function outputOf(child: ChildProcess, call: GitCall, { timeoutMs, outputBytes }: GitLimits): Promise<GitOutput> {
  const { signal, input, keepBytes = outputBytes } = call
  const ending = endOf(child)
  // If only bwrap is killed while it makes a sandbox, the process inside waits for it permanently, and holds the output.
  const kill = () => killGroup(child)
  signal.addEventListener('abort', kill)
  using ends = new DisposableStack()
  ends.defer(() => signal.removeEventListener('abort', kill))
  ends.defer(afterRunning(timeoutMs, kill))
  // Git may end before it has read everything.
  child.stdin?.on('error', () => {}).end(input)
  // oxlint-disable typescript/no-non-null-assertion -- they are pipes
  const [{ bytes: stdout, isCut }, { bytes: errorBytes }] = await Promise.all([
    keep(child.stdout!, keepBytes, kill),
    keep(child.stderr!, MAX_ERROR_BYTES),
  ])
  // oxlint-enable typescript/no-non-null-assertion
  const { code, wasKilled } = await ending
  signal.throwIfAborted()
  if (isCut && call.keepBytes === undefined)
    throw new GitFailure(`Git wrote more than ${outputBytes} bytes and was ended.`)
  if (isCut || code === 0) return { stdout, isCut }
  if (wasKilled) throw new GitFailure(`Git took longer than ${timeoutMs / 1000} seconds and was ended.`)
  throw new GitFailure(errorBytes.toString().trim() || `Git exited with code ${code}.`)
}

/** Reads to the end, also what it does not keep: a full pipe would block git. */
async function keep(stream: Readable, max: number, onMore: () => void = () => {}) {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of stream) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
    const part = chunk as Buffer
    if (length < max) parts.push(part)
    length += part.length
    if (length > max) onMore()
  }
  return { bytes: Buffer.concat(parts).subarray(0, max), isCut: length > max }
}

function endOf(child: ChildProcess): Promise<{ readonly code: number | null; readonly wasKilled: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; wasKilled: boolean }>()
  child.once('error', (cause) => reject(new GitFailure(cause.message, { cause })))
  child.once('close', (code, signal) => resolve({ code, wasKilled: signal !== null || child.killed }))
  // It is awaited after the output.
  promise.catch(() => {})
  return promise
}

/** The shell sessions of one conversation: created on demand, limited in number, ended together. */
import { existsSync } from 'node:fs'
import { copyFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import { Problem } from '../contract/problem.ts'
import { settlesWithin } from '../lib/bounded-wait.ts'
import { ignoreMissing, isOutOfDescriptors } from '../lib/error-code.ts'
import type { HostEnvironment } from '../lib/start-process.ts'
import { BACKGROUND_DIRECTORY } from './output/background-output.ts'
import type { ShellStand } from './bash-report.ts'
import { BashSession, type BashSessionOptions } from './bash-session.ts'
import { removeOldForks } from './left-shells.ts'
import { endMarkedProcesses } from './processes/marked-processes.ts'
import type { ShellLauncher, ShellNetwork } from '../sandbox/launch.ts'
import type { Program, ProgramOptions } from './program.ts'
import { startProgram } from './program.ts'
import type { OutputFilter, SessionFacts, Shell, Shells, ShellsState } from './shell.ts'
import { STATE_FILE } from './shell-files.ts'
import { DEFAULT_SHELL_LIMITS, type ShellLimits } from './shell-limits.ts'
import { waitForDescriptors } from './wait-for-descriptors.ts'
import type { ShellProcess } from './processes/shell-processes.ts'
import { commandIdOf, forkIdOf, listShellProcesses } from './processes/shell-processes.ts'

export type ShellsOptions = {
  readonly conversationId: string
  readonly workdir: string
  readonly additionalDirectories?: readonly string[] | undefined
  /** The server's directory for these shells: their pipes, and their saved state. */
  readonly stateDir: string
  /** The directory for the states of sessions. Default: `stateDir`. */
  readonly keptDir?: string
  /** Readable by the agent: complete outputs (kept) and outputs of background processes (removed at the end). */
  readonly outputDir: string
  /**
   * The conversation's private directory, separate from the workdir: its home and temporary files, if there is a
   * sandbox.
   */
  readonly privateDir: string
  /** What a new shell inherits. */
  readonly env: HostEnvironment
  readonly launcher: ShellLauncher
  /** Called at each start of a bash. Default: the open network. */
  readonly network?: () => ShellNetwork
  /** Called for each command: variables that commands see, but that the saved state never contains. */
  readonly secretsEnv?: () => Readonly<Record<string, string>>
  /** Creates a filter for each stream of output, and for each saved state. */
  readonly createFilter?: () => OutputFilter
  readonly limits?: Partial<ShellLimits>
}

/** The time for programs that are being started when the shells close; the file system may not answer. */
const START_WAIT_MS = 5000

const OPEN_NETWORK: ShellNetwork = { mode: 'open', adopt: () => () => {} }

const NO_FILTER: OutputFilter = {
  push: (bytes) => bytes,
  flush: () => Buffer.alloc(0),
  release: () => Buffer.alloc(0),
  held: 0,
}

export class BashShells implements Shells {
  readonly #options: ShellsOptions
  readonly #limits: ShellLimits
  readonly #sessions = new Map<string, BashSession>()
  /** Shells of single commands, by command. */
  readonly #forks = new Map<string, BashSession>()
  readonly #programs = new Set<Program>()
  readonly #starting = new Set<Promise<Program>>()
  /** Sessions without a saved state when they were opened: they start in the workdir. */
  readonly #fresh = new Set<string>()
  /** The search paths of sessions that were closed. */
  readonly #savedPaths = new Map<string, string | null>()
  #swept: Promise<void> | undefined
  #isClosed = false
  /** Processes can have left their session's process tree, so they are searched even if the session is gone. */
  #hadSessions = false

  constructor(options: ShellsOptions) {
    this.#options = options
    this.#limits = { ...DEFAULT_SHELL_LIMITS, ...options.limits }
  }

  get(sessionId: string): Shell {
    const session = this.#sessions.get(sessionId)
    if (session && !session.closing) return session
    this.#refuseWhenClosed()
    checkSessionId(sessionId)
    const { maxSessions } = this.#limits
    if (this.#open().length >= maxSessions) throw tooManySessions(maxSessions)
    const onEnd = () => {
      if (openedSession.stand !== standAtFirst) this.#savedPaths.set(sessionId, openedSession.stand.path)
      if (this.#sessions.get(sessionId) === openedSession) this.#sessions.delete(sessionId)
    }
    if (this.#hasState(sessionId)) this.#fresh.delete(sessionId)
    else this.#fresh.add(sessionId)
    const openedSession = this.#openSession(sessionId, { after: session?.closing, onEnd })
    const standAtFirst = openedSession.stand
    this.#sessions.set(sessionId, openedSession)
    return openedSession
  }

  standOf(sessionId: string, restarts = false): ShellStand {
    const session = this.#sessions.get(sessionId)
    const { workdir, env } = this.#options
    // A saved state brings its own search path, which this process knows if it has closed the shell.
    const unknownState = { cwd: undefined, path: this.#savedPaths.get(sessionId) ?? null }
    if (restarts) return { cwd: undefined, evaluates: [], path: env.path }
    if (!session) return this.#hasState(sessionId) ? unknownState : { cwd: workdir, evaluates: [], path: env.path }
    // A command that runs may change it, and before the first one it is not known where a saved state leads.
    if (session.status === 'busy') return { cwd: undefined, path: null }
    const isKnown = session.bash !== undefined || session.cwd !== workdir || this.#fresh.has(sessionId)
    return isKnown ? session.stand : unknownState
  }

  async fork(sessionId: string | undefined, id: string): Promise<Shell> {
    await this.#sweep()
    const forkId = forkIdOf(id)
    if (sessionId !== undefined) await this.#copyState(sessionId, join(this.#keptDir, forkId))
    // Check again here: a shell that opens after the end would never be ended.
    this.#refuseWhenClosed()
    const fork = this.#openSession(forkId, { isForOne: true, onEnd: () => this.#forks.delete(id) })
    this.#forks.set(id, fork)
    return fork
  }

  async endFork(id: string): Promise<void> {
    await this.#forks.get(id)?.close()
  }

  async startProgram(options: ProgramOptions): Promise<Program> {
    this.#refuseWhenClosed()
    this.#hadSessions = true
    const network = this.#options.network ?? (() => OPEN_NETWORK)
    const start = () => startProgram({ ...this.#options, lease: this.#limits.lease, network }, options)
    const starting = waitForDescriptors(start, () => this.#isClosed)
    this.#starting.add(starting)
    const program = await starting.finally(() => this.#starting.delete(starting))
    this.#programs.add(program)
    void program.ended.then(() => this.#programs.delete(program))
    // The shells may have been closed meanwhile, and would not end it.
    if (this.#isClosed) await program.kill()
    this.#refuseWhenClosed()
    return program
  }

  async list(): Promise<SessionFacts[]> {
    const open = this.#open().map(({ facts }) => facts)
    const knownIds = new Set(open.map(({ id }) => id))
    const keptIds = (await keptSessions(this.#keptDir)).filter((id) => !knownIds.has(id))
    return [...open, ...keptIds.map((id): SessionFacts => ({ id, status: 'suspended' }))].sort(byId)
  }

  async closeIdle(ms: number): Promise<void> {
    await Promise.all(this.#open().map((session) => session.closeIdle(ms)))
  }

  async end(sessionId: string): Promise<boolean> {
    const session = this.#sessions.get(sessionId)
    const isKept = (await keptSessions(this.#keptDir)).includes(sessionId)
    if ((!session || session.closing) && !isKept) return false
    if (session) await session.close()
    else await rm(join(this.#keptDir, sessionId), { recursive: true, force: true })
    return true
  }

  processes(): Promise<ShellProcess[]> {
    const { conversationId, stateDir } = this.#options
    const shells = this.#all().flatMap(({ id, bash }) =>
      bash ? [{ sessionId: id, commandId: commandIdOf(id), bash }] : [],
    )
    return listShellProcesses({ conversationId, stateDir, shells })
  }

  async close(state: ShellsState = 'kept'): Promise<void> {
    const { conversationId, stateDir, outputDir } = this.#options
    const isKept = state === 'kept'
    this.#isClosed = true
    try {
      // What is being started would not be found yet.
      const hasStarted = settlesWithin(START_WAIT_MS, Promise.allSettled(this.#starting))
      if (isKept) await hasStarted
      const programs = [...this.#programs].map((program) => (isKept ? program.end() : program.kill()))
      const sessions = this.#all().map((session) => session.suspend(isKept ? {} : { kills: true }))
      await Promise.all([hasStarted, ...programs, ...sessions])
    } finally {
      // These left the shells' process trees.
      if (this.#hadSessions) await endMarkedProcesses(conversationId)
    }
    for (const fork of this.#forks.keys())
      for (const place of new Set([stateDir, this.#keptDir]))
        await rm(join(place, forkIdOf(fork)), { recursive: true, force: true })
    this.#forks.clear()
    this.#sessions.clear()
    await rm(join(outputDir, BACKGROUND_DIRECTORY), { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Removes what a killed server has left, once. What has failed is tried again. */
  async #sweep(): Promise<void> {
    const sweeping = (this.#swept ??= removeOldForks(this.#keptDir))
    await sweeping.catch((error: unknown) => {
      if (this.#swept === sweeping) this.#swept = undefined
      throw error
    })
  }

  async #copyState(sessionId: string, directory: string): Promise<void> {
    checkSessionId(sessionId)
    if ((await this.#sessions.get(sessionId)?.keepState()) === false) throw tooLargeState(sessionId)
    await makeDirectories(directory, 0o700)
    const state = join(this.#keptDir, sessionId, STATE_FILE)
    await copyFile(state, join(directory, STATE_FILE)).catch(ignoreMissing)
  }

  get #keptDir(): string {
    return this.#options.keptDir ?? this.#options.stateDir
  }

  #hasState(sessionId: string): boolean {
    return SESSION_ID.test(sessionId) && existsSync(join(this.#keptDir, sessionId, STATE_FILE))
  }

  #all(): BashSession[] {
    return [...this.#sessions.values(), ...this.#forks.values()]
  }

  #open(): BashSession[] {
    return [...this.#sessions.values()].filter(({ closing }) => !closing)
  }

  #openSession(id: string, more: Partial<BashSessionOptions>): BashSession {
    const { conversationId, workdir, additionalDirectories, outputDir, privateDir, env, launcher } = this.#options
    const stateDir = join(this.#options.stateDir, id)
    const secrets = this.#options.secretsEnv ?? (() => ({}))
    const network = this.#options.network ?? (() => OPEN_NETWORK)
    const createFilter = this.#options.createFilter ?? (() => NO_FILTER)
    const keptDir = join(this.#keptDir, id)
    const directories = { workdir, additionalDirectories, stateDir, keptDir, outputDir, privateDir }
    const own = { id, conversationId, ...directories, env, network }
    this.#hadSessions = true
    return new BashSession({ ...own, secrets, createFilter, launcher, limits: this.#limits, ...more })
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new Problem('unavailable', 'The conversation is closed.')
  }
}

/** Returns the sessions with a saved state; shells of single commands are not sessions. */
async function keptSessions(stateDir: string): Promise<string[]> {
  const paths = await readdir(stateDir, { recursive: true }).catch((error: unknown) => {
    if (isOutOfDescriptors(error)) throw error
    return []
  })
  return paths
    .filter((path) => path.endsWith(`/${STATE_FILE}`))
    .map((path) => path.slice(0, -STATE_FILE.length - 1))
    .filter((id) => commandIdOf(id) === undefined)
}

const byId = (a: SessionFacts, b: SessionFacts) => (a.id < b.id ? -1 : 1)

/** The id names a directory. */
const SESSION_ID = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/

function checkSessionId(id: string): void {
  if (SESSION_ID.test(id)) return
  throw new Problem(
    'invalid_request',
    'A session id has 1 to 64 letters, digits, "_", "." or "-", and does not begin with "." or "-".',
  )
}

const tooLargeState = (id: string) =>
  new Problem(
    'limit_reached',
    `The variables and functions of the shell session ${id} take more than 1 MiB and cannot be copied: unset some, or restart it.`,
  )

function tooManySessions(limit: number): Problem {
  return new Problem('limit_reached', `A conversation has at most ${limit} shell sessions: use or end one of them.`, {
    details: { limit, retry_after: 1 },
  })
}

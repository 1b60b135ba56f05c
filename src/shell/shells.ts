/** The shell sessions of one conversation: made when asked for, bounded in number, ended together. */
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import { BACKGROUND_DIRECTORY } from './output/background-output.ts'
import { BashSession, type BashSessionOptions } from './bash-session.ts'
import { endMarkedProcesses } from './processes/marked-processes.ts'
import type { ShellLauncher, ShellNetwork } from '../sandbox/launch.ts'
import type { OutputFilter, SessionFacts, Shell, Shells } from './shell.ts'
import { STATE_FILE } from './shell-files.ts'
import { DEFAULT_SHELL_LIMITS, type ShellLimits } from './shell-limits.ts'
import { commandIdOf, forkIdOf, listShellProcesses } from './processes/shell-processes.ts'

export type ShellsOptions = {
  readonly conversationId: string
  readonly workdir: string
  /** The server's own directory for these shells: their pipes, and the state that outlives them. */
  readonly stateDir: string
  /** Where the agent can read: full outputs (kept) and outputs of background processes (removed at the end). */
  readonly outputDir: string
  /** The conversation's own, beside the workdir: its home and temporary files, when there is a wall. */
  readonly privateDir: string
  /** The whole environment of a new shell; see `shellEnvironment`. */
  readonly env: Readonly<Record<string, string>>
  readonly launcher: ShellLauncher
  /** Asked for at each start of a bash. Default: the open network. */
  readonly network?: () => ShellNetwork
  /** Asked for at each command: variables that commands see, but that the saved state never holds. */
  readonly secretsEnv?: () => Readonly<Record<string, string>>
  /** One for each stream of output, and for each state that is saved. */
  readonly createFilter?: () => OutputFilter
  readonly limits?: Partial<ShellLimits>
}

const OPEN_NETWORK: ShellNetwork = { mode: 'open', adopt: () => () => {} }

const NO_FILTER: OutputFilter = {
  push: (bytes) => bytes,
  flush: () => Buffer.alloc(0),
  release: () => Buffer.alloc(0),
  held: 0,
}

export function createShells(options: ShellsOptions): Shells {
  const limits = { ...DEFAULT_SHELL_LIMITS, ...options.limits }
  const sessions = new Map<string, BashSession>()
  /** Shells that are for one command; by that. */
  const forks = new Map<string, BashSession>()
  let swept: Promise<void> | undefined
  const all = () => [...sessions.values(), ...forks.values()]
  let isClosed = false
  /** What a session leaves can have left its process tree, so it is looked for also when the session is gone. */
  let hadSessions = false

  const openSession = (id: string, more: Partial<BashSessionOptions> = {}) => {
    const { conversationId, workdir, outputDir, privateDir, env, launcher } = options
    const stateDir = join(options.stateDir, id)
    const secrets = options.secretsEnv ?? (() => ({}))
    const network = options.network ?? (() => OPEN_NETWORK)
    const createFilter = options.createFilter ?? (() => NO_FILTER)
    const places = { workdir, stateDir, outputDir, privateDir }
    const own = { id, conversationId, ...places, env, network }
    hadSessions = true
    return new BashSession({ ...own, secrets, createFilter, launcher, limits, ...more })
  }
  const refuseWhenClosed = () => {
    if (isClosed) throw new Problem('unavailable', 'The conversation is closed.')
  }

  return {
    get(sessionId: string): Shell {
      const session = sessions.get(sessionId)
      if (session && !session.closing) return session
      refuseWhenClosed()
      checkSessionId(sessionId)
      const open = [...sessions.values()].filter(({ closing }) => !closing)
      if (open.length >= limits.maxSessions) throw tooManySessions(limits.maxSessions)
      const onEnd = () => sessions.get(sessionId) === opened && sessions.delete(sessionId)
      const opened = openSession(sessionId, { after: session?.closing, onEnd })
      sessions.set(sessionId, opened)
      return opened
    },

    async fork(sessionId, id) {
      checkSessionId(sessionId)
      await (swept ??= removeOldForks(options.stateDir))
      await sessions.get(sessionId)?.keepState()
      const forkId = forkIdOf(id)
      const directory = join(options.stateDir, forkId)
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await copyFile(join(options.stateDir, sessionId, STATE_FILE), join(directory, STATE_FILE)).catch(ignoreMissing)
      // Only now: what is opened after the end would be ended by nobody.
      refuseWhenClosed()
      const fork = openSession(forkId, { isForOne: true, onEnd: () => forks.delete(id) })
      forks.set(id, fork)
      return fork
    },

    async endFork(id) {
      await forks.get(id)?.close()
    },

    async list() {
      const open = [...sessions.values()].filter(({ closing }) => !closing).map(({ facts }) => facts)
      const known = new Set(open.map(({ id }) => id))
      const kept = (await keptSessions(options.stateDir)).filter((id) => !known.has(id))
      return [...open, ...kept.map((id): SessionFacts => ({ id, status: 'suspended' }))].sort(byId)
    },

    async end(sessionId) {
      const session = sessions.get(sessionId)
      const isKept = (await keptSessions(options.stateDir)).includes(sessionId)
      if ((!session || session.closing) && !isKept) return false
      if (session) await session.close()
      else await rm(join(options.stateDir, sessionId), { recursive: true, force: true })
      return true
    },

    processes() {
      const { conversationId, stateDir } = options
      const shells = all().flatMap(({ id, bash }) =>
        bash ? [{ sessionId: id, commandId: commandIdOf(id), bash }] : [],
      )
      return listShellProcesses({ conversationId, stateDir, shells })
    },

    async close() {
      isClosed = true
      try {
        await Promise.all(all().map((session) => session.suspend()))
      } finally {
        // What left the shells' process trees.
        if (hadSessions) await endMarkedProcesses(options.conversationId)
      }
      for (const fork of forks.keys())
        await rm(join(options.stateDir, forkIdOf(fork)), { recursive: true, force: true })
      forks.clear()
      sessions.clear()
      await rm(join(options.outputDir, BACKGROUND_DIRECTORY), { recursive: true, force: true })
    },

    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}

/** Those that have a state to begin with; the shells of single commands are no sessions. */
async function keptSessions(stateDir: string): Promise<string[]> {
  const paths = await readdir(stateDir, { recursive: true }).catch(() => [])
  return paths
    .filter((path) => path.endsWith(`/${STATE_FILE}`))
    .map((path) => path.slice(0, -STATE_FILE.length - 1))
    .filter((id) => commandIdOf(id) === undefined)
}

/** What a server that was killed has left. */
async function removeOldForks(stateDir: string): Promise<void> {
  const names = await readdir(stateDir).catch(() => [])
  const forks = names.filter((name) => commandIdOf(name) !== undefined)
  await Promise.all(forks.map((name) => rm(join(stateDir, name), { recursive: true, force: true })))
}

const byId = (a: SessionFacts, b: SessionFacts) => (a.id < b.id ? -1 : 1)

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

/** It names a directory. */
function checkSessionId(id: string): void {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(id)) return
  throw new Problem(
    'invalid_request',
    'A session id has 1 to 64 letters, digits, "_", "." or "-", and begins with none of the last two.',
  )
}

function tooManySessions(limit: number): Problem {
  return new Problem('limit_reached', `A conversation has at most ${limit} shell sessions: use or close one of them.`, {
    details: { limit, retry_after: 1 },
  })
}

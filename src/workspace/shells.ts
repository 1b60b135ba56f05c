/** The shell sessions of one conversation: made when asked for, bounded in number, ended together. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import { BACKGROUND_DIRECTORY, BashSession, type ShellLimits } from './bash-session.ts'
import { endMarkedProcesses } from './marked-processes.ts'
import type { OutputFilter, Shell, ShellLauncher, Shells } from './shell.ts'

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
  /** Asked for at each command: variables that commands see, but that the saved state never holds. */
  readonly secretsEnv?: () => Readonly<Record<string, string>>
  /** One for each stream of output, and for each state that is saved. */
  readonly createFilter?: () => OutputFilter
  readonly limits?: Partial<ShellLimits>
}

const NO_FILTER: OutputFilter = {
  push: (bytes) => bytes,
  flush: () => Buffer.alloc(0),
  release: () => Buffer.alloc(0),
  held: 0,
}

export const MAX_SHELL_SESSIONS = 16

const DEFAULT_SHELL_LIMITS: ShellLimits = {
  outputBytes: 32 * 1024,
  // Three of them stay within the two seconds in which a pause has to answer.
  graceMs: 600,
  idleMs: 10 * 60_000,
  maxSessions: MAX_SHELL_SESSIONS,
}

export function createShells(options: ShellsOptions): Shells {
  const limits = { ...DEFAULT_SHELL_LIMITS, ...options.limits }
  const sessions = new Map<string, BashSession>()
  let isClosed = false

  return {
    get(sessionId: string): Shell {
      const session = sessions.get(sessionId)
      if (session && !session.closing) return session
      if (isClosed) throw new Problem('unavailable', 'The conversation is closed.')
      checkSessionId(sessionId)
      const open = [...sessions.values()].filter(({ closing }) => !closing)
      if (open.length >= limits.maxSessions) throw tooManySessions(limits.maxSessions)
      const opened = openSession(sessionId, options, limits, session?.closing)
      sessions.set(sessionId, opened)
      return opened
    },

    async close() {
      isClosed = true
      try {
        await Promise.all([...sessions.values()].map((session) => session.suspend()))
      } finally {
        // What left the shells' process trees.
        if (sessions.size > 0) await endMarkedProcesses(options.conversationId)
      }
      sessions.clear()
      await rm(join(options.outputDir, BACKGROUND_DIRECTORY), { recursive: true, force: true })
    },

    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}

function openSession(id: string, options: ShellsOptions, limits: ShellLimits, after?: Promise<void>): BashSession {
  const { conversationId, workdir, outputDir, privateDir, env, launcher } = options
  const stateDir = join(options.stateDir, id)
  const secrets = options.secretsEnv ?? (() => ({}))
  const createFilter = options.createFilter ?? (() => NO_FILTER)
  const places = { workdir, stateDir, outputDir, privateDir }
  return new BashSession({ id, conversationId, ...places, env, secrets, createFilter, launcher, limits, after })
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
  return new Problem('invalid_request', `A conversation has at most ${limit} shell sessions: use or close one of them.`)
}

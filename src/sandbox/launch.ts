/** The interface of shell launchers: how a shell's process is started, and in which sandbox; and the launcher without one. */
import type { Server } from 'node:net'
import type { NetworkMode } from '../contract/values/network.ts'
import type { Sandbox } from '../contract/values/sandbox.ts'
import type { ChildProcess } from '../lib/start-process.ts'
import type { ShownPlace } from './mounts.ts'
import { makeDirectories } from '../files/make-directories.ts'

/** A shell's network access. */
export type ShellNetwork = {
  readonly mode: NetworkMode
  /**
   * Takes over, for `allowlist`, the socket that listens inside the sandbox for clients of the proxy. The returned
   * function is called when the shell has ended. Must not throw.
   */
  readonly adopt: (listener: Server) => () => void
}

/** What the person whose commands opened a conversation lets it use of the home. */
export type HomeView = {
  readonly home: string
  /** The places that it may read. */
  readonly readable: readonly ShownPlace[]
  /** The real path of the socket of the ssh agent. */
  readonly sshAgent?: string | undefined
  /** The server's directory of the caches of package managers, for this workdir. */
  readonly packageCache?: string | undefined
}

export type LaunchOptions = {
  readonly workdir: string
  /** True for a program that only looks at the workdir. Without a sandbox nothing enforces it. */
  readonly isWorkdirReadOnly?: boolean | undefined
  /** Other directories of the host that the shell may write to; those that were moved or deleted are left out. */
  readonly additionalDirectories?: readonly string[] | undefined
  /** Server directories that the shell reads. It needs no write access, and has none in a sandbox. */
  readonly visible: readonly string[]
  /** The conversation's private directory, which replaces the host's in a sandbox; created on demand. */
  readonly privateDir: string
  /** A launcher that cannot enforce it rejects: it never falls back to the open network. */
  readonly network: ShellNetwork
  /** Undefined: nothing. */
  readonly home?: HomeView | undefined
  /** Replaces the configuration of the system for git in a sandbox. Without a sandbox, git has that of the user. */
  readonly gitConfig?: Buffer | undefined
}

/**
 * The number of the first of a launch's `descriptors` in the started program: after the standard streams and the
 * reports.
 */
export const FIRST_EXTRA_DESCRIPTOR = 4

/**
 * How to start one shell. The caller starts it at most once, and disposes it in both cases as soon as that is decided:
 * this closes `descriptors` in the server.
 */
export type Launch = AsyncDisposable & {
  readonly argv: readonly string[]
  /** The working directory of the started program. The shell itself then changes to its workdir. */
  readonly cwd: string
  /** Variables that override the shell's saved state. The launch sets them itself, where the shell runs. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Variables that a saved state may contain from a shell in another network mode: they are unset if they have these
   * values.
   */
  readonly stale?: Readonly<Record<string, string>>
  /** If present, the program gets an IPC channel as its last descriptor. Called as soon as it is started. */
  readonly onChannel?: (child: ChildProcess) => void
  /** Open in the server; the started program inherits them, numbered from `FIRST_EXTRA_DESCRIPTOR` in this order. */
  readonly descriptors: readonly number[]
  /**
   * How many generations below the started program the shell is: 0 if it is that program, or replaces it by exec. From
   * 1 on, the child of the started program is the init of a PID namespace, and its end ends all processes in it.
   */
  readonly generations: 0 | 1 | 2
  /** Called with the started program's pid. The shell executes nothing before this has resolved. */
  readonly onSpawned?: (pid: number) => Promise<void>
  /** Called once, when the started program has ended. Must not throw. */
  readonly onEnded?: () => void
}

/**
 * Starts a shell's process: on the host, or in a sandbox. `isolation` names the actual sandbox. `launch` receives the
 * shell's argv, creates the directories it needs, and rejects if a sandbox is not possible.
 */
export interface ShellLauncher {
  readonly isolation: 'bubblewrap' | 'none'
  /** True if shells can be started in other network modes than `open`. */
  readonly isolatesNetwork?: boolean
  /** Undefined if there is none. */
  readonly sandbox?: Sandbox
  launch(argv: readonly string[], options: LaunchOptions): Promise<Launch>
}

/** Shells run on the host as the server's user. */
export const hostLauncher: ShellLauncher = {
  isolation: 'none',
  async launch(argv, { workdir, network }) {
    if (network.mode !== 'open')
      throw new Error(`Without a sandbox no shell is started in the network mode ${network.mode}.`)
    // Recreate it if it was deleted: no shell could start without it.
    await makeDirectories(workdir)
    return launchOnHost(argv)
  },
}

/** Starts `argv` unchanged. `generations` as in `Launch`. */
export function launchOnHost(argv: readonly string[], generations: Launch['generations'] = 0): Launch {
  // Do not start in the workdir: changing there may hang, and Node waits for it.
  return { argv, cwd: '/', env: {}, descriptors: [], generations, [Symbol.asyncDispose]: () => Promise.resolve() }
}

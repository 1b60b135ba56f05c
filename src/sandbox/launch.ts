/** What a launcher of shells promises: how a shell's process is started, and in which sandbox. */
import type { ChildProcess } from 'node:child_process'
import type { Server } from 'node:net'
import type { NetworkMode } from '../contract/network.ts'
import type { Sandbox } from '../contract/sandbox.ts'

/** How a shell reaches the network. */
export type ShellNetwork = {
  readonly mode: NetworkMode
  /**
   * For `allowlist`: takes over the socket that listens inside of the sandbox for the clients of the proxy. What it
   * returns is called when the shell has ended. Must not throw.
   */
  readonly adopt: (listener: Server) => () => void
}

export type LaunchOptions = {
  readonly workdir: string
  /** Directories of the server that the shell reads. It need not, and in a sandbox cannot, write there. */
  readonly visible: readonly string[]
  /** The conversation's own, for what a sandbox gives it in place of the host's; made when it is needed. */
  readonly privateDir: string
  /** A launcher that cannot enforce it rejects: nothing ever falls back to the open network. */
  readonly network: ShellNetwork
}

/** The number that the first of a launch's `descriptors` has in the started program: after the streams and the reports. */
export const FIRST_EXTRA_DESCRIPTOR = 4

/**
 * What to start for one shell. The caller starts it once or not at all, and disposes it in both cases as soon as that is
 * decided: this closes `descriptors` in the server.
 */
export type Launch = AsyncDisposable & {
  readonly argv: readonly string[]
  /** Where the started program begins. The shell itself then changes to its workdir. */
  readonly cwd: string
  /** Variables that the shell has whatever its saved state says. */
  readonly env: Readonly<Record<string, string>>
  /** Variables that a saved state may hold from a shell in another network mode: those with these values are unset. */
  readonly stale?: Readonly<Record<string, string>>
  /** When it is there, the program gets an IPC channel as its last descriptor. Called as soon as it is started. */
  readonly onChannel?: (child: ChildProcess) => void
  /** Open in the server; the started program inherits them, numbered from `FIRST_EXTRA_DESCRIPTOR` in this order. */
  readonly descriptors: readonly number[]
  /**
   * How many generations below the started program the shell is: 0 when it is that program, or what it becomes by
   * exec. From 1 on, the child of the started program is the init of a PID namespace and its end is the end of all in it.
   */
  readonly generations: 0 | 1 | 2
  /** Called with the started program's pid. The shell executes nothing before this has resolved. */
  readonly onSpawned?: (pid: number) => Promise<void>
  /** Called once, when the started program has ended. Must not throw. */
  readonly onEnded?: () => void
}

/**
 * How a shell's process is started: on the host, or in a sandbox. `isolation` is what the sandbox honestly is. `launch`
 * gets the shell's argv, makes the directories that it needs, and rejects when there can be no sandbox.
 */
export interface ShellLauncher {
  readonly isolation: 'bubblewrap' | 'none'
  /** Whether shells can be started in other network modes than `open`. */
  readonly isolatesNetwork?: boolean
  /** Undefined when there is none. */
  readonly sandbox?: Sandbox
  launch(argv: readonly string[], options: LaunchOptions): Promise<Launch>
}

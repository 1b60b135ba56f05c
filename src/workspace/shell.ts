/** What a shell session promises: commands in, results out, one after the other, with state that outlives each. */

/** `stdout` and `stderr` are bounded: head and tail are kept, `truncated` says so, and the whole is in `fullOutputPath`. */
export type CommandResult = {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  /** Where the shell stands after the command. */
  readonly cwd: string
  readonly durationMs: number
  readonly timedOut: boolean
  readonly interrupted: boolean
  /** Of a trailing `&`. */
  readonly backgroundPid?: number
  readonly truncated: boolean
  readonly fullOutputPath?: string
  /** What the reader should know besides: the shell ended and was started again, the working directory vanished, … */
  readonly note?: string
}

export type CommandOptions = {
  /** Seconds; then the command's processes are ended. */
  readonly timeout: number
  readonly signal: AbortSignal
  /**
   * Output as it comes. `offset` counts the bytes of the stream that came before. Called in order and without gaps, for
   * the first 16 MiB of each stream, never after the result. Must not throw.
   */
  readonly onOutput?: (stream: 'stdout' | 'stderr', text: string, offset: number) => void
  /** Extra variables exported before this command; they stay. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * What an output stream passes before anything of it is shown or kept. It may hold bytes back until more come, or until
 * it is flushed: then the stream is over, and another may begin. `release` gives out what is held and goes on.
 */
export interface OutputFilter {
  /** The answer is only valid until the argument changes. */
  push(bytes: Uint8Array): Uint8Array
  flush(): Uint8Array
  release(): Uint8Array
  /** Bytes held back. */
  readonly held: number
}

/**
 * A persistent bash. Commands run one at a time in the order of the calls. `run` does not reject for anything the
 * command does; it rejects only when no shell can be started. `close` ends every process the session started.
 */
export interface Shell extends AsyncDisposable {
  readonly id: string
  readonly cwd: string
  run(command: string, options: CommandOptions): Promise<CommandResult>
  /** Kills what runs and starts a fresh shell in the workdir, its exports and functions forgotten. */
  restart(): Promise<void>
  close(): Promise<void>
}

/**
 * The shell sessions of one conversation. `get` makes the session when it is new (up to a limit: throws a `Problem`).
 * `close` ends all of the conversation's processes, those that called `setsid` too, and resolves when they are dead.
 */
export interface Shells extends AsyncDisposable {
  get(sessionId: string): Shell
  close(): Promise<void>
}

export type LaunchOptions = {
  readonly workdir: string
  /** Directories of the server that exist and that the shell reads. It need not, and behind a wall cannot, write there. */
  readonly visible: readonly string[]
  /** The conversation's own, for what a wall gives it in place of the host's; made when it is needed. */
  readonly privateDir: string
}

/**
 * How a shell's process is started: on the host, or behind a wall. Gets the shell's argv and answers the argv
 * to execute instead. `isolation` is what the wall honestly is. `wrap` throws when there could be no wall.
 */
export interface ShellLauncher {
  readonly isolation: 'bubblewrap' | 'none'
  /** Variables that every shell has, whatever its saved state says. */
  environment?(privateDir: string): Readonly<Record<string, string>>
  wrap(argv: readonly string[], options: LaunchOptions): readonly string[]
}

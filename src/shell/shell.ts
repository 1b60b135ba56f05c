/** The interface of shell sessions: runs commands one at a time, with state that outlives each. */
import type { ShellStand } from './bash-report.ts'
import type { InputPipe } from './input-pipe.ts'
import type { ExceededLimit } from './limit-values.ts'
import type { ProcessEntry } from './processes/process-table.ts'
import type { Program, ProgramOptions } from './program.ts'
import type { ShellProcess } from './processes/shell-processes.ts'

/**
 * `stdout` and `stderr` are bounded: head and tail are kept, `truncated` says so, and the complete output is in
 * `fullOutputPath`.
 */
export type ShellResult = {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  /** The shell's working directory after the command. */
  readonly cwd: string
  readonly durationMs: number
  readonly timedOut: boolean
  readonly interrupted: boolean
  /** It wrote more than its `outputs` may hold, and was ended for that. */
  readonly flooded: boolean
  /** Pid of a trailing `&`, inside the sandbox. */
  readonly backgroundPid?: number
  /** The same process's pid on the host; also undefined if it has already ended. */
  readonly backgroundHostPid?: number
  readonly truncated: boolean
  readonly fullOutputPath?: string
  /** Total bytes of each stream, however many were kept. */
  readonly outputBytes: { readonly stdout: number; readonly stderr: number }
  /** Its background processes, as far as the shell reported them. */
  readonly processesLeft: readonly ProcessEntry[]
  /** Background processes still write to its `outputs`. */
  readonly outputsHeld?: true
  /** The limit of its conversation that made it fail. */
  readonly exceeded?: ExceededLimit
  /** A note for the reader: the shell ended and was restarted, the working directory was deleted, … */
  readonly note?: string
}

export type CommandOptions = {
  /** Seconds, or Infinity; then the command's processes are ended. */
  readonly timeout: number
  readonly signal: AbortSignal
  /**
   * Receives output as it arrives. `offset` counts the preceding bytes of the stream. Called in order and without gaps,
   * for the first 16 MiB of each stream, never after the result. Must not throw.
   */
  readonly onOutput?: (stream: 'stdout' | 'stderr', text: string, offset: number) => void
  /** Extra variables exported before this command; they persist. */
  readonly env?: Readonly<Record<string, string>>
  /** Variables of this command and its processes only. */
  readonly ownEnv?: Readonly<Record<string, string>>
  /** Its standard input; without it, empty. */
  readonly input?: InputPipe
  /**
   * Files for all of its output; without it, only output that is too long for the result, in a file that the server
   * chooses.
   */
  readonly outputs?: OutputFiles
  /** Called when the command begins in its shell. `pid` is the shell's pid on the host. */
  readonly onStart?: (pid: number | undefined) => void
}

/** `shownPath` is the path that the result shows to its readers. */
export type OutputPlace = { readonly path: string; readonly shownPath: string }

/** Files for the complete output of one command, including its processes after its end. */
export type OutputFiles = {
  readonly stdout: OutputPlace
  readonly stderr: OutputPlace
  /** Maximum bytes of each file. */
  readonly limit: number
  /** What happens to a command that writes more: it is ended, or the rest is dropped. */
  readonly whenFull: 'end' | 'drop'
  /** Called when more of a file can be read. */
  readonly onWritten: () => void
  /** Called once, after the result: nothing more will be written, because no process holds them any longer. */
  readonly onClosed: () => void
}

/**
 * Filters an output stream before anything of it is shown or stored. It may buffer bytes until more arrive, or until it
 * is flushed: then the stream ends, and another may begin. `release` returns the buffered bytes and continues.
 */
export interface OutputFilter {
  /** The result is valid only until the argument changes. */
  push(bytes: Uint8Array): Uint8Array
  flush(): Uint8Array
  release(): Uint8Array
  /** Number of buffered bytes. */
  readonly held: number
}

/**
 * A persistent bash. Commands run one at a time in the order of the calls. `run` never rejects because of what the
 * command does; it rejects only if no shell can be started. `close` ends every process that the session started.
 */
export interface Shell extends AsyncDisposable {
  readonly id: string
  readonly cwd: string
  run(command: string, options: CommandOptions): Promise<ShellResult>
  /** Kills what runs and starts a new shell in the workdir, without the previous exports and functions. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** `suspended`: it has no process, but its saved state is kept for the next one. */
export type SessionFacts = {
  readonly id: string
  readonly status: 'busy' | 'idle' | 'suspended'
  readonly cwd?: string
  readonly pid?: number
}

/** The state of shells that are closed: `kept` for the next start, or `discarded`: they are killed and execute nothing more. */
export type ShellsState = 'kept' | 'discarded'

/**
 * The shell sessions of one conversation. `get` creates a new session on demand (up to a limit: throws a `Problem`).
 * `close` ends all of the conversation's processes, including those that called `setsid`, and resolves when they are
 * dead. By default it keeps the state of the sessions.
 */
export interface Shells extends AsyncDisposable {
  get(sessionId: string): Shell
  /**
   * Returns how a session stands, or will after a restart, as far as that is known before it starts. Makes no session.
   */
  standOf(sessionId: string, restarts?: boolean): ShellStand
  /**
   * Starts a shell for one command, with the session's current directory, exports, functions and options; without a
   * session, in the workdir and with none of them. It ends by itself when no process of the command is left. `id` must
   * not be a session's.
   */
  fork(sessionId: string | undefined, id: string): Promise<Shell>
  /** Starts a program in addition to the sessions; it ends with the shells. It is not in the list of processes. */
  startProgram(options: ProgramOptions): Promise<Program>
  /** Ends such a shell with its processes, if it still exists. */
  endFork(id: string): Promise<void>
  list(): Promise<SessionFacts[]>
  /** Ends the shells that have been idle for `ms`, except those with background processes. Their state is kept. */
  closeIdle(ms: number): Promise<void>
  /** Ends a session, its processes and its state; returns true if it existed. */
  end(sessionId: string): Promise<boolean>
  /** Returns the processes of the conversation, except the shells of its sessions. */
  processes(): Promise<ShellProcess[]>
  close(state?: ShellsState): Promise<void>
}

/** What a shell session promises: commands in, results out, one after the other, with state that outlives each. */
import type { InputPipe } from './input-pipe.ts'
import type { Exceeded } from './limit-values.ts'
import type { ProcessEntry } from './processes/process-table.ts'
import type { ShellProcess } from './processes/shell-processes.ts'

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
  /** It wrote more than its `outputs` may hold, and was ended for that. */
  readonly flooded: boolean
  /** Of a trailing `&`, as the shell counts. */
  readonly backgroundPid?: number
  /** The same as the host counts; undefined also when it has ended by now. */
  readonly backgroundHostPid?: number
  readonly truncated: boolean
  readonly fullOutputPath?: string
  /** Bytes that came of each stream, whatever was kept of them. */
  readonly outputBytes: { readonly stdout: number; readonly stderr: number }
  /** What it has put into the background, as far as the shell told. */
  readonly left: readonly ProcessEntry[]
  /** Processes in the background still write to its `outputs`. */
  readonly outputsHeld?: true
  /** The limit of its conversation that it ran into and did not come to a good end for. */
  readonly exceeded?: Exceeded
  /** What the reader should know besides: the shell ended and was started again, the working directory vanished, … */
  readonly note?: string
}

export type CommandOptions = {
  /** Seconds, or Infinity; then the command's processes are ended. */
  readonly timeout: number
  readonly signal: AbortSignal
  /**
   * Output as it comes. `offset` counts the bytes of the stream that came before. Called in order and without gaps, for
   * the first 16 MiB of each stream, never after the result. Must not throw.
   */
  readonly onOutput?: (stream: 'stdout' | 'stderr', text: string, offset: number) => void
  /** Extra variables exported before this command; they stay. */
  readonly env?: Readonly<Record<string, string>>
  /** Variables of this command and its processes alone. */
  readonly ownEnv?: Readonly<Record<string, string>>
  /** What it reads; without it, nothing. */
  readonly input?: InputPipe
  /** Where all of its output goes; without it, only what is too long for the result, to a file of the server's choice. */
  readonly outputs?: OutputFiles
  /** Called when it is its turn and there is a shell: it begins now. `pid` is the shell's, as the host counts. */
  readonly onStart?: (pid: number | undefined) => void
}

/** `toldAs` is what readers of the result are told of where the file is. */
export type OutputPlace = { readonly path: string; readonly toldAs: string }

/** Files that take the whole output of one command, also what its processes write after its end. */
export type OutputFiles = {
  readonly stdout: OutputPlace
  readonly stderr: OutputPlace
  /** Bytes each of them holds. */
  readonly limit: number
  /** What comes of a command that writes more: it is ended, or the rest is dropped. */
  readonly whenFull: 'end' | 'drop'
  /** More can be read of one of them. */
  readonly onWritten: () => void
  /** After the result, and once: nothing more will come, as nobody holds them any longer. */
  readonly onClosed: () => void
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

/** `suspended`: no process holds it, but the state that its next one begins with is kept. */
export type SessionFacts = {
  readonly id: string
  readonly status: 'busy' | 'idle' | 'suspended'
  readonly cwd?: string
  readonly pid?: number
}

/**
 * The shell sessions of one conversation. `get` makes the session when it is new (up to a limit: throws a `Problem`).
 * `close` ends all of the conversation's processes, those that called `setsid` too, and resolves when they are dead.
 */
export interface Shells extends AsyncDisposable {
  get(sessionId: string): Shell
  /**
   * A shell for one command alone, that begins as the session stands now: directory, exports, functions, options. It
   * ends by itself when nothing of the command is left in it. `id` is its own, and no session's.
   */
  fork(sessionId: string, id: string): Promise<Shell>
  /** Ends such a shell with its processes, if there is one still. */
  endFork(id: string): Promise<void>
  list(): Promise<SessionFacts[]>
  /** Ends a session, its processes and its state; answers whether there was one. */
  end(sessionId: string): Promise<boolean>
  /** What runs in the conversation, but for the shells of its sessions. */
  processes(): Promise<ShellProcess[]>
  close(): Promise<void>
}

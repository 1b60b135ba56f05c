/** One persistent shell session: commands in turn, each with its result, and a state that outlives the bash that holds it. */
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTurns, type InTurn } from '../lib/turns.ts'
import { BackgroundOutputs } from './background-output.ts'
import { runBashCommand, type FinishedCommand } from './bash-command.ts'
import { BashProcess } from './bash-process.ts'
import { BASH_ARGV, CLOSE_INHERITED, exportScript, restoreScript, setUpScript } from './bash-script.ts'
import {
  FLOODED,
  notStarted,
  RESTORED,
  tellEnd,
  tellEndBetween,
  tellLostCwd,
  toCommandResult,
} from './command-result.ts'
import { killShell } from './interrupt.ts'
import { endMarkedProcesses, shellMark } from './marked-processes.ts'
import type { CommandOptions, CommandResult, OutputFilter, Shell, ShellLauncher } from './shell.ts'
import { ShellFiles, type OutputPipes } from './shell-files.ts'

export type ShellLimits = {
  /** Bytes of each output stream that a result holds. */
  readonly outputBytes: number
  /** After each of SIGINT, SIGTERM and SIGKILL. */
  readonly graceMs: number
  /** A shell without processes closes after this; its state is kept. */
  readonly idleMs: number
  readonly maxSessions: number
}

export type BashSessionOptions = {
  readonly id: string
  readonly conversationId: string
  readonly workdir: string
  /** The session's own directory for pipes, the command and the saved state. */
  readonly stateDir: string
  /** Full and background outputs, where the agent can read them. */
  readonly outputDir: string
  /** See `LaunchOptions`. */
  readonly privateDir: string
  readonly env: Readonly<Record<string, string>>
  readonly secrets: () => Readonly<Record<string, string>>
  readonly createFilter: () => OutputFilter
  readonly launcher: ShellLauncher
  readonly limits: ShellLimits
  /** The end of a session that used the same directory. */
  readonly after?: Promise<unknown> | undefined
}

const START_TIMEOUT_MS = 10_000
const SAVE_AFTER_MS = 2000
/** Within the output directory. */
export const BACKGROUND_DIRECTORY = 'background'

export class BashSession implements Shell {
  readonly id: string
  readonly #options: BashSessionOptions
  readonly #files: ShellFiles
  readonly #background = new BackgroundOutputs()
  #cwd: string
  #bash: BashProcess | undefined
  #pipes: OutputPipes | undefined
  readonly #inTurn: InTurn
  #closing: Promise<void> | undefined
  #isClosed = false
  #isBusy = false
  #restartsAsked = 0
  #idleTimer: NodeJS.Timeout | undefined
  #saveTimer: NodeJS.Timeout | undefined
  #savedState: Buffer | undefined
  /** Whether `set` and `shopt` options come back too: not after a shell's end, of which one may be the cause (`-e`). */
  #restoresOptions = true
  /** What happened since the last result, for the note of the next. */
  #news: string[] = []

  constructor(options: BashSessionOptions) {
    this.id = options.id
    this.#options = options
    this.#files = new ShellFiles(options.stateDir, options.createFilter)
    this.#cwd = options.workdir
    this.#inTurn = createTurns(options.after)
  }

  get cwd(): string {
    return this.#cwd
  }

  /** Once it is being closed: when that is done. */
  get closing(): Promise<void> | undefined {
    return this.#closing
  }

  async run(command: string, options: CommandOptions): Promise<CommandResult> {
    if (this.#isClosed) throw new Error(`Shell session ${this.id} is closed.`)
    return this.#inTurn(async () => {
      if (options.signal.aborted || this.#endedBy) return notStarted(this.#cwd)
      clearTimeout(this.#idleTimer)
      this.#isBusy = true
      try {
        return await this.#runNow(command, options)
      } finally {
        this.#isBusy = false
        this.#closeWhenIdle()
      }
    }, options.signal)
  }

  async restart(): Promise<void> {
    this.#restartsAsked++
    const ended = this.#endProcesses()
    // It is awaited below, but only in its turn.
    ended.catch(() => {})
    await this.#inTurn(async () => {
      try {
        await ended
        await this.#beginAnew()
      } finally {
        this.#restartsAsked--
      }
    })
  }

  /** Ends the session, its processes and its state. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  /** Ends the shell, but not what left its process tree. A session made anew goes on from the state. */
  async suspend(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#saveTimer)
    if (this.#bash && this.#isBusy) killShell(this.#bash)
    await this.#inTurn(async () => {
      await this.#endShell()
      this.#background.close()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    await this.#endProcesses()
    await this.suspend()
    await this.#files.removeAll()
  }

  async #beginAnew(): Promise<void> {
    await this.#endProcesses()
    await this.#endShell()
    clearTimeout(this.#saveTimer)
    this.#saveTimer = undefined
    await this.#files.forgetState()
    this.#news = []
    this.#cwd = this.#options.workdir
  }

  async #runNow(command: string, options: CommandOptions): Promise<CommandResult> {
    const startedAt = performance.now()
    const bash = await this.#start()
    const pipes = (this.#pipes ??= await this.#files.makePipes())
    // From here to the first line sent there is no pause in which the session could be ended unseen.
    if (!bash || this.#endedBy) return notStarted(this.#cwd)
    const { outputDir, secrets, limits } = this.#options
    const { outputBytes: keptBytes, graceMs } = limits
    const run = { bash, files: this.#files, pipes, command, options, secrets: secrets(), outputDir, keptBytes, graceMs }
    const finished = await runBashCommand(run)
    const notes = [...this.#news.splice(0), ...(await this.#follow(finished, bash))]
    const durationMs = performance.now() - startedAt
    const wasEnded = !finished.report && this.#endedBy !== undefined
    return toCommandResult(finished, { exit: bash.exit, cwd: this.#cwd, durationMs, wasEnded, notes })
  }

  /** Takes over what the command made of the shell; answers what the reader should know of it. */
  async #follow({ report, pipesHeld, stopped }: FinishedCommand, bash: BashProcess): Promise<string[]> {
    const notes: string[] = []
    if (report) this.#cwd = report.cwd
    if (report?.lostCwd !== undefined) notes.push(tellLostCwd(report.lostCwd, report.cwd))
    if (pipesHeld) notes.push(this.#leaveToBackground(bash))
    if (stopped === 'flood') notes.push(FLOODED)
    if (report) this.#saveSoon()
    else notes.push(await this.#tellEnd(bash))
    return notes
  }

  #leaveToBackground(bash: BashProcess): string {
    bash.markBackground()
    const { stdout, stderr } = this.#pipes!
    this.#pipes = undefined
    const directory = join(this.#options.outputDir, BACKGROUND_DIRECTORY)
    mkdirSync(directory, { recursive: true })
    return this.#background.adopt([stdout, stderr], join(directory, `${randomUUID()}.log`))
  }

  /** After a bash that ended by itself. */
  async #tellEnd(bash: BashProcess): Promise<string> {
    const exit = await bash.ended
    await this.#endShell()
    this.#restoresOptions = false
    if (this.#endedBy) return `The shell was ${this.#endedBy} while the command ran.`
    return tellEnd(exit, { cwd: this.#cwd, endedBackground: bash.endedBackground })
  }

  get #endedBy(): 'closed' | 'restarted' | undefined {
    if (this.#isClosed) return 'closed'
    return this.#restartsAsked > 0 ? 'restarted' : undefined
  }

  /** Nothing when the session was ended meanwhile. */
  async #start(): Promise<BashProcess | undefined> {
    if (this.#bash?.exit) {
      this.#news.push(tellEndBetween(this.#bash.exit))
      await this.#tellEnd(this.#bash)
    }
    if (this.#bash) return this.#bash
    const { workdir, outputDir, stateDir, privateDir, launcher, env, conversationId } = this.#options
    // A workdir that was deleted is made again: no shell could start without it.
    for (const directory of [workdir, outputDir]) mkdirSync(directory, { recursive: true })
    mkdirSync(stateDir, { recursive: true, mode: 0o700 })
    const fixed = { ...launcher.environment?.(privateDir), ...shellMark(conversationId, this.id, stateDir) }
    const argv = launcher.wrap(BASH_ARGV, { workdir, visible: [stateDir, outputDir], privateDir })
    const bash = new BashProcess(argv, { cwd: workdir, env: { ...env, ...fixed } })
    this.#bash = bash
    const hasState = await this.#files.hasState()
    const restore = hasState ? restoreScript(this.#files.statePath, { withOptions: this.#restoresOptions }) : ''
    const timer = setTimeout(() => killShell(bash), START_TIMEOUT_MS)
    const report = await bash.send(CLOSE_INHERITED + restore + exportScript(fixed) + setUpScript(workdir))
    clearTimeout(timer)
    if (!report) return this.#failStart(bash)
    this.#cwd = report.cwd
    if (report.lostCwd !== undefined) this.#news.push(tellLostCwd(report.lostCwd, report.cwd))
    if (hasState && this.#restoresOptions) this.#news.push(RESTORED)
    this.#restoresOptions = true
    return bash
  }

  async #failStart(bash: BashProcess): Promise<undefined> {
    this.#bash = undefined
    if (this.#endedBy) return undefined
    throw new Error(`The shell did not start: ${await bash.complaint()}`)
  }

  #closeWhenIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#isClosed) return
    // A state that cannot be saved is no reason to fail: the shell stays open, and the next command tries again.
    const close = () => void this.#inTurn(() => this.#closeIdle()).catch(() => {})
    this.#idleTimer = setTimeout(close, this.#options.limits.idleMs).unref()
  }

  async #closeIdle(): Promise<void> {
    if (!this.#bash || this.#bash.exit) return
    const isInUse = this.#bash.descendants().length > 0 || !this.#background.isEmpty
    if (isInUse) return this.#closeWhenIdle()
    await this.#save()
    await this.#endShell()
  }

  /** The bash that holds the state, and what serves only while one runs. */
  async #endShell(): Promise<void> {
    const bash = this.#bash
    if (bash) {
      await bash.end()
      // The result of a command that was run must not be lost for this.
      await this.#save().catch((error: unknown) =>
        this.#news.push(`The shell's state could not be saved: ${String(error)}.`),
      )
    }
    this.#bash = undefined
    this.#pipes?.stdout.close()
    this.#pipes?.stderr.close()
    this.#pipes = undefined
    await this.#files.closeScript()
  }

  async #endProcesses(): Promise<void> {
    if (this.#bash) killShell(this.#bash)
    await endMarkedProcesses(this.#options.conversationId, this.id)
  }

  #saveSoon(): void {
    const save = () => {
      this.#saveTimer = undefined
      // Tried again after the next command and at the end of the shell.
      this.#save().catch(() => {})
    }
    this.#saveTimer ??= setTimeout(save, SAVE_AFTER_MS).unref()
  }

  async #save(): Promise<void> {
    const state = this.#bash?.savedState
    if (!state || state === this.#savedState) return
    await this.#files.saveState(state)
    this.#savedState = state
  }
}

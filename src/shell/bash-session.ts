/** One persistent shell session: runs commands one at a time, and keeps a state that outlives the bash process. */
import { Queue } from '../lib/queue.ts'
import { BackgroundOutputs } from './output/background-output.ts'
import { IdleClose } from './idle-close.ts'
import { runBashCommand, type FinishedCommand } from './bash-command.ts'
import type { BashProcess } from './bash-process.ts'
import type { ShellStand } from './bash-report.ts'
import { FLOODED, notStarted, tellEnd, tellEndBetween, toCommandResult } from './command-result.ts'
import { endMarkedProcesses } from './processes/marked-processes.ts'
import { SessionState } from './session-state.ts'
import { ShellPlace } from './shell-place.ts'
import type { CommandOptions, ShellResult, OutputFilter, OutputFiles, SessionFacts, Shell } from './shell.ts'
import { ShellFiles, type OutputPipes } from './shell-files.ts'
import { LAST_CHECK_MS, mayStart, type ShellLimits } from './shell-limits.ts'
import { BashStarter } from './bash-starter.ts'
import { waitForDescriptors } from './wait-for-descriptors.ts'
import type { BashPlan } from './start-bash.ts'

export type BashSessionOptions = Omit<BashPlan, 'sessionId' | 'startMs'> & {
  readonly id: string
  readonly secrets: () => Readonly<Record<string, string>>
  readonly createFilter: () => OutputFilter
  readonly limits: ShellLimits
  /** Resolves when an earlier session with the same directory has ended. */
  readonly after?: Promise<unknown> | undefined
  /** True for the session of a single command: it ends with its last process, and mentions no restored state. */
  readonly isForOne?: boolean
  /** Called when it has ended permanently, with its files. */
  readonly onEnd?: () => void
}

export class BashSession implements Shell {
  readonly id: string
  #place: ShellPlace
  readonly #options: BashSessionOptions
  readonly #files: ShellFiles
  readonly #state: SessionState
  readonly #background: BackgroundOutputs
  #bash: BashProcess | undefined
  readonly #starter: BashStarter
  readonly #queue = new Queue({ limit: 1 })
  #closing: Promise<void> | undefined
  #isClosed = false
  /** Number of commands that run or wait. */
  #commands = 0
  #isRunning = false
  #pendingRestarts = 0
  /** If the state cannot be saved, the shell stays open, and closing is tried again later. */
  readonly #idle = new IdleClose(() => this.#queue.run(() => this.#closeIdle()))
  /** Events since the last result, for the note of the next one. */
  #news: string[] = []

  constructor(options: BashSessionOptions) {
    this.id = options.id
    this.#options = options
    this.#files = new ShellFiles(options.stateDir, options.createFilter, options.keptDir)
    this.#state = new SessionState(this.#files)
    this.#background = new BackgroundOutputs(options)
    this.#starter = new BashStarter({
      plan: { ...options, sessionId: options.id, startMs: options.limits.startMs },
      state: this.#state,
      tellsRestored: !options.isForOne,
      isEnded: () => this.#endedBy !== undefined,
      onBash: (bash) => (this.#bash = bash),
    })
    this.#place = new ShellPlace(options.workdir, options.env.path)
    if (options.after) this.#queue.run(async () => options.after).catch(() => {})
  }

  get cwd(): string {
    return this.#place.cwd
  }

  get stand(): ShellStand {
    return this.#place.stand
  }

  get status(): SessionFacts['status'] {
    // A killed bash may still be there for a moment: the next command does not start another one before its end is known.
    return this.#commands > 0 ? 'busy' : this.bash ? 'idle' : 'suspended'
  }

  get facts(): SessionFacts {
    const pid = this.bash?.entry?.pid
    return { id: this.id, status: this.status, cwd: this.cwd, ...(pid !== undefined && { pid }) }
  }

  /** The bash that currently has the state. */
  get bash(): BashProcess | undefined {
    return this.#bash?.exit ? undefined : this.#bash
  }

  /** Resolves when it is closed; undefined unless it is closing. */
  get closing(): Promise<void> | undefined {
    return this.#closing
  }

  async run(command: string, options: CommandOptions): Promise<ShellResult> {
    if (this.#isClosed) throw new Error(`Shell session ${this.id} is closed.`)
    this.#commands++
    const turn = this.#queue.take({ signal: options.signal })
    try {
      if (!(await turn.entry) || !(await mayStart(this.#options.limits, options.signal))) return notStarted(this.cwd)
      return await this.#runExclusive(command, options)
    } finally {
      turn.leave()
      this.#commands--
    }
  }

  async restart(): Promise<void> {
    this.#pendingRestarts++
    const ending = this.#endProcesses()
    // The result is awaited below, in turn.
    ending.catch(() => {})
    await this.#queue.run(async () => {
      try {
        await ending
        await this.#beginAnew()
      } finally {
        this.#pendingRestarts--
      }
    })
  }

  /** Resolves when the state after the last finished command is on disk; to false if it is too large for that. */
  async keepState(): Promise<boolean> {
    if (this.#commands === 0) return await this.#queue.run(() => this.#state.saveLast(this.bash))
    await this.#state.save(this.#bash)
    return true
  }

  /** Ends the bash if it has been idle for `ms`. The next command starts one with its state. */
  async closeIdle(ms: number): Promise<void> {
    if (this.bash) await this.#idle.closeAfter(ms)
  }

  /** Ends the session, its processes and its state. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  /** Ends the shell, but not what left its process tree. Its state is kept. If it `kills`, the shell runs nothing more. */
  async suspend({ kills = this.#isRunning } = {}): Promise<void> {
    this.#isClosed = true
    this.#idle.end()
    this.#state.stop()
    if (kills) void this.#kill()
    await this.#queue.run(async () => {
      await this.#endShell()
      this.#background.close()
    })
  }

  /** Kills its shell and the running command, and a shell that is being started. Never rejects. */
  async #kill(): Promise<void> {
    this.#starter.abort()
    await this.#bash?.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    await this.#endProcesses()
    await this.#retire()
  }

  async #retire(): Promise<void> {
    const removing = this.suspend().then(() => this.#files.removeAll())
    await removing.finally(() => this.#options.onEnd?.())
  }

  async #beginAnew(): Promise<void> {
    await this.#endProcesses()
    await this.#endShell()
    await this.#state.forget()
    this.#news = []
    this.#place = new ShellPlace(this.#options.workdir, this.#options.env.path)
  }

  async #runExclusive(command: string, options: CommandOptions): Promise<ShellResult> {
    if (options.signal.aborted || this.#endedBy) return notStarted(this.cwd)
    this.#idle.stop()
    this.#isRunning = true
    try {
      return await this.#runNow(command, options)
    } finally {
      this.#isRunning = false
      this.#idle.begin(this.#options.isForOne ? 0 : this.#options.limits.idleMs)
    }
  }

  async #runNow(command: string, options: CommandOptions): Promise<ShellResult> {
    const startedAt = performance.now()
    const prepare = async () => ({ bash: await this.#start(), ...(await this.#files.openAll(options)) })
    const { bash, pipes, stdin } = await waitForDescriptors(prepare, () => this.#endedBy !== undefined)
    // The lease may have ended during the start. There is no `await` between the last check and the first line sent.
    if (!bash || !(await mayStart(this.#options.limits, options.signal)) || this.#endedBy) return notStarted(this.cwd)
    options.onStart?.(bash.pid)
    const { outputDir, secrets, limits } = this.#options
    const run = { bash, files: this.#files, pipes, command, options, stdin, secrets: secrets(), outputDir, limits }
    const finishedCommand = await runBashCommand(run)
    const before = this.#news.splice(0)
    const { notes, isHeld } = await this.#follow(finishedCommand, { bash, pipes, outputs: options.outputs })
    const result = toCommandResult(finishedCommand, {
      exit: bash.exit,
      cwd: this.cwd,
      durationMs: performance.now() - startedAt,
      wasEnded: !finishedCommand.report && this.#endedBy !== undefined,
      notes: [...before, ...notes],
      hostPidOf: (ownPid) => bash.hostPidOf(ownPid),
    })
    return { ...result, processesLeft: bash.takeNewBackground(), ...(isHeld && { outputsHeld: true }) }
  }

  /** Applies the changes that the command made to the shell; returns notes for the result. */
  async #follow(
    finishedCommand: FinishedCommand,
    { bash, pipes, outputs }: { bash: BashProcess; pipes: OutputPipes; outputs: OutputFiles | undefined },
  ): Promise<{ notes: string[]; isHeld: boolean }> {
    const { report, pipesHeld, stopped } = finishedCommand
    const notes: string[] = []
    if (report) notes.push(...this.#place.take(report))
    let isHeld = false
    if (pipesHeld) {
      bash.markBackground()
      const note = this.#background.adopt(pipes, outputs && { outputs, finished: finishedCommand })
      this.#files.releasePipes()
      if (note === undefined) isHeld = true
      else notes.push(note)
    }
    if (stopped === 'flood') notes.push(FLOODED)
    if (report) this.#state.saveSoon(() => this.#bash)
    else notes.push(await this.#tellEnd(bash))
    return { notes, isHeld }
  }

  /** Handles a bash that ended by itself. */
  async #tellEnd(bash: BashProcess): Promise<string> {
    const exit = await bash.ended
    await this.#endShell()
    this.#state.leaveOutOptions()
    if (this.#endedBy) return `The shell was ${this.#endedBy} while the command ran.`
    return tellEnd(exit, { cwd: this.cwd, endedBackground: bash.endedBackground })
  }

  get #endedBy(): 'closed' | 'restarted' | undefined {
    return this.#isClosed ? 'closed' : this.#pendingRestarts > 0 ? 'restarted' : undefined
  }

  /** Returns undefined if the session was ended meanwhile. */
  async #start(): Promise<BashProcess | undefined> {
    if (this.#bash?.exit) {
      this.#news.push(tellEndBetween(this.#bash.exit, this.#bash))
      await this.#tellEnd(this.#bash)
    }
    if (this.#bash) return this.#bash
    try {
      const { bash, report, notes } = await this.#starter.start()
      this.#news.push(...notes, ...this.#place.take(report))
      return bash
    } catch (error) {
      if (this.#endedBy) return undefined
      throw error
    }
  }

  async #closeIdle(): Promise<void> {
    const { isForOne, limits } = this.#options
    const isInUse = (this.bash?.descendants().length ?? 0) > 0 || !this.#background.isEmpty
    if (isInUse) return this.#idle.begin(isForOne ? LAST_CHECK_MS : limits.idleMs)
    if (isForOne) return void this.#retire().catch(() => {}) // not awaited: it runs in a later turn
    if (!this.bash) return
    await this.#state.save(this.#bash)
    await this.#endShell()
  }

  /** Ends the bash and releases what is needed only while one runs. */
  async #endShell(): Promise<void> {
    const bash = this.#bash
    if (bash) {
      await bash.end()
      if (!bash.isStateCurrent) this.#place.forget()
      // The result of the executed command must not be lost because of this.
      const note = (error: unknown) => this.#news.push(`The shell's state could not be saved: ${String(error)}.`)
      await this.#state.save(bash).catch(note)
    }
    this.#bash = undefined
    await this.#files.closeAll()
  }

  async #endProcesses(): Promise<void> {
    await this.#kill()
    await endMarkedProcesses(this.#options.conversationId, this.id)
  }
}

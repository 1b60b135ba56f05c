/**
 * One running bash: sends lines, receives a report after each and the saved state, and reports how it ended. Knows
 * nothing about sessions.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Readable, Writable } from 'node:stream'
import { afterRunning } from '../lib/bounded-wait.ts'
import { type HostEnvironment, startProcess, type ChildProcess } from '../lib/start-process.ts'
import type { Launch } from '../sandbox/launch.ts'
import { readReports, type Report } from './bash-report.ts'
import { ThrottledReader } from './output/throttled-reader.ts'
import { reportScript, REPORT_STDIO_INDEX } from './bash-script.ts'
import {
  findByOwnPid,
  findDescendants,
  findFirstborn,
  findProcess,
  isAlive,
  signalProcess,
  type ProcessEntry,
} from './processes/process-table.ts'

const TOKEN_BYTES = 16
const MAX_DIAGNOSTICS = 2000
const HANG_UP_MS = 1000
/** Waiting time for output that the process wrote just before its end. */
const LINGER_MS = 50
/** A process that is blocked in the kernel (an unresponsive file system) may not end until that is over. */
const KILL_MS = 1000
/** A killed process ends when it gets a processor, which takes long on a busy machine. */
const NAMESPACE_END_MS = 5000
const NAMESPACE_LOOK_MS = 1

type PendingReport = { readonly serial: number; readonly resolve: (report: Report | undefined) => void }

export type BashExit = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** It was killed, but the kernel has not ended it. */
  readonly isStuck?: true
}

export class BashProcess {
  readonly #child: ChildProcess
  readonly #input: Writable
  readonly #reports: ThrottledReader
  /** The key is the token. */
  readonly #pending = new Map<string, PendingReport>()
  #serial = 0
  #isGone = false
  #hasReported = false
  #lastBackgroundPid = ''
  readonly #generations: Launch['generations']
  /** True if its pid may be reused. */
  #hasExited = false
  #shell: ProcessEntry | undefined
  /** The init of the shell's PID namespace, in a sandbox, whose end ends all other processes in it. */
  #init: ProcessEntry | undefined
  /** Processes that outlived the command that started them, and so belong to no later command. */
  #background: ProcessEntry[] = []
  readonly #isInBackground = (entry: ProcessEntry) => this.#background.some((each) => isSame(each, entry))
  /** The background processes that were not fetched yet. */
  #newBackground: ProcessEntry[] = []
  #diagnostics = ''

  /**
   * Resolves when the process is gone, in a sandbox with everything it started, or could not be ended; rejects if it
   * never started. Does not wait for its pipes to close: children hold them.
   */
  readonly ended: Promise<BashExit>
  readonly #end = Promise.withResolvers<BashExit>()
  exit: BashExit | undefined
  /** A script that restores the last state that the shell has written: after the last command, if `isStateCurrent`. */
  savedState: Buffer | undefined
  isStateCurrent = true
  hadState = true // the same before the last report

  /** Starts the process immediately. */
  constructor(launch: Launch, env: HostEnvironment) {
    const [file = '', ...args] = launch.argv
    // Use the process's exit: background children may hold the pipes forever.
    this.#child = startProcess(file, args, {
      cwd: launch.cwd,
      env,
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe', 'pipe', ...launch.descriptors, ...(launch.onChannel ? (['ipc'] as const) : [])],
    })
    launch.onChannel?.(this.#child)
    this.#generations = launch.generations
    this.ended = this.#watchEnd()
    if (launch.onEnded) void this.ended.then(launch.onEnded, launch.onEnded)
    // oxlint-disable-next-line typescript/no-non-null-assertion -- its `stdio` has a pipe there
    this.#input = this.#child.stdin!
    // `ended` reports the end of the shell.
    this.#input.on('error', () => {})
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types do not know that a pipe at this index can be read
    const reports = this.#child.stdio[REPORT_STDIO_INDEX] as Readable
    this.#reports = new ThrottledReader(reports)
    reports.on('error', () => {})
    reports.on(
      'data',
      readReports({
        isExpected: (token) => this.#pending.has(token),
        onReport: (report, token) => this.#handleReport(report, token),
        onState: (state) => {
          this.savedState = state
          this.isStateCurrent = true
        },
      }),
    )
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#diagnostics = (this.#diagnostics + text).slice(-MAX_DIAGNOSTICS)
    })
  }

  /** Returns the last error output of bash or of the launcher. */
  async complaint(): Promise<string> {
    await this.ended.catch((error: unknown) => (this.#diagnostics += String(error)))
    await new Promise<void>((resolve) => void afterRunning(LINGER_MS, resolve))
    return this.#diagnostics.trim() || 'it gave no reason'
  }

  /** Resolves with the report on the last of `lines`, or with undefined if the shell has ended. */
  send(lines: string): Promise<Report | undefined> {
    if (this.#isGone) return Promise.resolve(undefined)
    const token = randomBytes(TOKEN_BYTES).toString('hex')
    this.#reports.resume()
    this.#input.write(lines + reportScript(token, this.#lastBackgroundPid))
    return new Promise((resolve) => this.#pending.set(token, { serial: ++this.#serial, resolve }))
  }

  /** Returns the processes in the shell, except those that earlier commands left running. */
  foreground(): ProcessEntry[] {
    const shell = this.entry
    return shell ? findDescendants(shell.pid, this.#isInBackground) : []
  }

  /** Returns all living descendants; in a sandbox, also those that have left its process tree. */
  descendants(): ProcessEntry[] {
    const shell = this.entry
    if (!shell) return []
    return findDescendants((this.#init ?? shell).pid).filter(({ pid }) => pid !== shell.pid)
  }

  /** True if its end also ended background processes. */
  get endedBackground(): boolean {
    return this.#init !== undefined && this.#background.length > 0
  }

  /** Treats the current processes as background processes from now on. */
  markBackground(): void {
    const below = this.descendants()
    this.#newBackground.push(...below.filter((entry) => !this.#isInBackground(entry)))
    this.#background = below
  }

  /** Returns the new background processes since the last call. */
  takeNewBackground(): ProcessEntry[] {
    return this.#newBackground.splice(0)
  }

  /** The pids of the shell itself, including the launcher's: they belong to no command. */
  get ownPids(): number[] {
    return [this.#child.pid, this.#init?.pid, this.entry?.pid].filter((pid) => pid !== undefined)
  }

  /** Returns the host pid for a pid inside the sandbox; never one of a process outside the sandbox. */
  hostPidOf(ownPid: string): number | undefined {
    const shell = this.entry
    return shell && findByOwnPid((this.#init ?? shell).pid, ownPid)
  }

  /** The pid of the started program, which may be the launcher; undefined if the start failed. */
  get launchedPid(): number | undefined {
    return this.#child.pid
  }

  /** The shell's process, found through the kernel's parent pids: reports of the shell itself are not trusted. */
  get entry(): ProcessEntry | undefined {
    if (this.#isGone || this.#child.pid === undefined) return undefined
    if (this.#shell) return findSame(this.#shell)
    if (this.#hasExited) return undefined
    if (this.#generations > 0) this.#init = findFirstborn(this.#child.pid, 1)
    const shell = findFirstborn(this.#child.pid, this.#generations)
    // There may be other processes in its place before its first report: those that set up the sandbox.
    if (this.#hasReported) this.#shell = shell
    return shell
  }

  /** The last known pid of the shell, for display, not for signals. Looked up only until the shell is known. */
  get pid(): number | undefined {
    return this.#isGone ? undefined : (this.#shell ?? this.entry)?.pid
  }

  signal(signal: NodeJS.Signals): void {
    const { entry } = this
    if (entry) signalProcess(entry, signal)
  }

  /** Closes its input, like closing a terminal, and resolves when it is gone. */
  async end(): Promise<void> {
    const cancel = afterRunning(HANG_UP_MS, () => void this.kill())
    // Reports from here on come after the state of the last command.
    await this.send('')
    this.#input.end()
    await this.ended
    cancel()
  }

  /**
   * Kills the shell and its command; in a sandbox, everything in it. Resolves within `KILL_MS` and the end of the
   * namespace, even if the kernel did not end it by then. Never rejects.
   */
  async kill(): Promise<void> {
    const { entry } = this
    const all = [this.#init, entry, ...this.foreground()].filter((each) => each !== undefined)
    for (const each of all) signalProcess(each, 'SIGKILL')
    // While the sandbox is being set up, there may be no other process to end yet.
    if (!entry) this.#child.kill('SIGKILL')
    const cancel = afterRunning(KILL_MS, () => this.#giveUp())
    await this.ended.catch(() => {})
    cancel()
  }

  #giveUp(): void {
    this.#child.kill('SIGKILL')
    // An exit that is reported meanwhile has priority.
    afterRunning(LINGER_MS, () => this.#settle({ code: null, signal: 'SIGKILL', isStuck: true }))
  }

  #watchEnd(): Promise<BashExit> {
    const { promise, reject } = this.#end
    this.#child.once('error', reject)
    this.#child.once('exit', (code, signal) => void this.#settleEnd({ code, signal }))
    // The caller that waits for a report receives the failed start.
    promise.catch(() => this.#release())
    return promise
  }

  async #settleEnd(exit: BashExit): Promise<void> {
    this.#hasExited = true
    // Read first what it had written before.
    await this.#reports.catchUp()
    await this.#endNamespace()
    this.#settle(exit)
  }

  /** Keeps the first end that is reported. */
  #settle(exit: BashExit): void {
    this.exit ??= exit
    this.#release()
    this.#end.resolve(this.exit)
  }

  /** The kernel ends the rest of the namespace, but after the exit was reported. */
  async #endNamespace(): Promise<void> {
    const deadline = performance.now() + NAMESPACE_END_MS
    while (this.#init && isAlive(this.#init) && performance.now() < deadline) {
      signalProcess(this.#init, 'SIGKILL')
      await delay(NAMESPACE_LOOK_MS)
    }
  }

  #release(): void {
    this.#isGone = true
    for (const { resolve } of this.#pending.values()) resolve(undefined)
    this.#pending.clear()
    // Children may hold the other ends of these forever.
    afterRunning(LINGER_MS, () => this.#child.stdio.forEach((stream) => stream?.destroy()))
  }

  #handleReport(report: Report, token: string): void {
    const pendingReport = this.#pending.get(token)
    if (!pendingReport) return
    this.#hasReported = true
    this.hadState = this.isStateCurrent
    this.isStateCurrent = false
    if (report.lastBackgroundPid !== this.#lastBackgroundPid) this.markBackground()
    this.#lastBackgroundPid = report.lastBackgroundPid
    // An interrupt can consume the line that asks for a report; the next report then answers both.
    for (const [each, { serial, resolve }] of this.#pending) {
      if (serial > pendingReport.serial) continue
      this.#pending.delete(each)
      resolve(report)
    }
    // The state follows, in many small pieces, and nothing waits for it.
    if (this.#pending.size === 0) this.#reports.pause()
  }
}

/** Returns the current entry of the process, unless its pid was reused. */
function findSame(knownEntry: ProcessEntry): ProcessEntry | undefined {
  const now = findProcess(knownEntry.pid)
  return now && isSame(now, knownEntry) ? now : undefined
}

function isSame(one: ProcessEntry, other: ProcessEntry): boolean {
  return one.pid === other.pid && one.startTime === other.startTime
}

/** One running bash: lines in, a report after each, what it saved last, and how it ended. Knows nothing of sessions. */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { Readable, Writable } from 'node:stream'
import type { Launch } from './shell.ts'
import { readReports, type Report } from './bash-report.ts'
import { reportScript, REPORT_STDIO_INDEX } from './bash-script.ts'
import {
  findByOwnPid,
  findDescendants,
  findProcess,
  isAlive,
  signalProcess,
  type ProcessEntry,
} from './process-table.ts'

const TOKEN_BYTES = 16
const MAX_DIAGNOSTICS = 2000
const HANG_UP_MS = 1000
/** For what the process wrote just before its end. */
const LINGER_MS = 50
/** A process that is stuck in the kernel may keep its namespace for longer than anyone should wait. */
const NAMESPACE_END_MS = 2000
const NAMESPACE_LOOK_MS = 1

type Asked = { readonly token: string; readonly resolve: (report: Report | undefined) => void }

export type BashExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export class BashProcess {
  readonly #child: ChildProcess
  readonly #input: Writable
  /** By their number. */
  readonly #pending = new Map<number, Asked>()
  #serial = 0
  #isGone = false
  #hasReported = false
  #lastBackgroundPid = ''
  /** The launcher's own pid, until the shell has said its own. */
  #pid: number | undefined
  /** Behind a wall: the first process of the shell's PID namespace, with whose end all others of it are gone. */
  #first: ProcessEntry | undefined
  /** Processes that outlived the command that started them, so none of a later command's. */
  #background: ProcessEntry[] = []
  /** Those of them that nobody has asked for yet. */
  #newBackground: ProcessEntry[] = []
  #diagnostics = ''

  /**
   * Resolves when the process is gone, behind a wall with all that it started; rejects when there was none. Not when its
   * pipes close: children hold those.
   */
  readonly ended: Promise<BashExit>
  exit: BashExit | undefined
  /** A script that brings back the state after the last command. */
  savedState: Buffer | undefined

  /** Starts it at once. */
  constructor(launch: Launch, env: Readonly<Record<string, string>>) {
    const [file = '', ...args] = launch.argv
    // Not execa: its promise waits for the pipes, which a shell's background children may hold for ever.
    this.#child = spawn(file, args, {
      cwd: launch.cwd,
      env,
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe', 'pipe', ...launch.descriptors, ...(launch.onChannel ? (['ipc'] as const) : [])],
    })
    launch.onChannel?.(this.#child)
    this.#pid = this.#child.pid
    this.ended = this.#watchEnd()
    if (launch.onEnded) void this.ended.then(launch.onEnded, launch.onEnded)
    this.#input = this.#child.stdin!
    // A shell that ended is told by `ended`.
    this.#input.on('error', () => {})
    // The types do not know that a pipe at this index can be read.
    const reports = this.#child.stdio[REPORT_STDIO_INDEX] as Readable
    reports.on('error', () => {})
    reports.on(
      'data',
      readReports({
        isExpected: (token) => this.#pending.values().some((asked) => asked.token === token),
        onReport: (report) => this.#handleReport(report),
        onState: (state) => (this.savedState = state),
      }),
    )
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#diagnostics = (this.#diagnostics + text).slice(-MAX_DIAGNOSTICS)
    })
  }

  /** What bash itself (or the launcher) had to say before its end. */
  async complaint(): Promise<string> {
    await this.ended.catch((error: unknown) => (this.#diagnostics += String(error)))
    await delay(LINGER_MS)
    return this.#diagnostics.trim() || 'it gave no reason'
  }

  /** Resolves with the report on the last of `lines`, or with nothing when the shell has ended. */
  send(lines: string): Promise<Report | undefined> {
    if (this.#isGone) return Promise.resolve(undefined)
    const serial = ++this.#serial
    const token = randomBytes(TOKEN_BYTES).toString('hex')
    this.#input.write(lines + reportScript(token, serial, this.#lastBackgroundPid))
    return new Promise((resolve) => this.#pending.set(serial, { token, resolve }))
  }

  /** What runs in it now but what earlier commands left running. */
  foreground(): ProcessEntry[] {
    const isKnown = (entry: ProcessEntry) => this.#background.some((known) => isSame(known, entry))
    return this.#pid === undefined ? [] : findDescendants(this.#pid, isKnown)
  }

  /** All that it started and that is still below it; behind a wall, also what has left its process tree. */
  descendants(): ProcessEntry[] {
    if (this.#pid === undefined) return []
    return findDescendants(this.#first?.pid ?? this.#pid).filter(({ pid }) => pid !== this.#pid)
  }

  /** Whether its end was also that of processes it had in the background. */
  get endedBackground(): boolean {
    return this.#first !== undefined && this.#background.length > 0
  }

  /** From now on, what runs in it was left there on purpose. */
  markBackground(): void {
    const below = this.descendants()
    const isNew = (entry: ProcessEntry) => !this.#background.some((known) => isSame(known, entry))
    this.#newBackground.push(...below.filter(isNew))
    this.#background = below
  }

  /** What has come to the background since the last call. */
  takeNewBackground(): ProcessEntry[] {
    return this.#newBackground.splice(0)
  }

  /** The processes that it consists of, the launcher's among them: they are no command's. */
  get ownPids(): number[] {
    return [this.#child.pid, this.#first?.pid, this.#pid].filter((pid) => pid !== undefined)
  }

  /** The pid on this side of a wall of what the shell itself counts as `ownPid`. */
  hostPidOf(ownPid: string): number | undefined {
    return this.#pid === undefined ? undefined : findByOwnPid(this.#first?.pid ?? this.#pid, ownPid)
  }

  /** Of the program that was started, which need not be the shell itself; undefined when the start failed. */
  get launchedPid(): number | undefined {
    return this.#child.pid
  }

  get entry(): ProcessEntry | undefined {
    return this.#isGone || this.#pid === undefined ? undefined : findProcess(this.#pid)
  }

  signal(signal: NodeJS.Signals): void {
    const entry = this.entry
    if (entry) signalProcess(entry, signal)
  }

  /** Closes its input, as one closes a terminal, and resolves when it is gone. */
  async end(): Promise<void> {
    const timer = setTimeout(() => this.signal('SIGKILL'), HANG_UP_MS)
    // What it reports now comes after the state that the last command left.
    await this.send('')
    this.#input.end()
    await this.ended
    clearTimeout(timer)
  }

  #watchEnd(): Promise<BashExit> {
    const ended = new Promise<BashExit>((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', (code, signal) => resolve(this.#settleEnd({ code, signal })))
    })
    // Who waits for a report hears of a failed start there.
    ended.catch(() => this.#release())
    return ended
  }

  async #settleEnd(exit: BashExit): Promise<BashExit> {
    // First whatever it had written before.
    await nextTurn()
    await this.#endNamespace()
    this.exit = exit
    this.#release()
    return exit
  }

  /** The kernel ends what is left in it, but after the exit was told. */
  async #endNamespace(): Promise<void> {
    const deadline = performance.now() + NAMESPACE_END_MS
    while (this.#first && isAlive(this.#first) && performance.now() < deadline) {
      signalProcess(this.#first, 'SIGKILL')
      await delay(NAMESPACE_LOOK_MS)
    }
  }

  #release(): void {
    this.#isGone = true
    for (const { resolve } of this.#pending.values()) resolve(undefined)
    this.#pending.clear()
    // Children may hold the other ends of these for ever.
    setTimeout(() => this.#child.stdio.forEach((stream) => stream?.destroy()), LINGER_MS).unref()
  }

  #findNamespace(shellPid: string): void {
    this.#pid = findByOwnPid(this.#child.pid!, shellPid) ?? this.#pid
    const first = this.#pid === this.#child.pid ? undefined : findByOwnPid(this.#child.pid!, '1')
    this.#first = first === undefined ? undefined : findProcess(first)
  }

  #handleReport(report: Report): void {
    if (!this.#hasReported) this.#findNamespace(report.shellPid)
    this.#hasReported = true
    const isNewBackground = report.lastBackgroundPid !== this.#lastBackgroundPid
    this.#lastBackgroundPid = report.lastBackgroundPid
    if (isNewBackground) this.markBackground()
    // An interrupt can eat the line that asks for a report; the next one then answers for it too.
    for (const [serial, { resolve }] of this.#pending) {
      if (serial > report.serial) continue
      this.#pending.delete(serial)
      resolve(report)
    }
  }
}

function isSame(one: ProcessEntry, other: ProcessEntry): boolean {
  return one.pid === other.pid && one.startTime === other.startTime
}

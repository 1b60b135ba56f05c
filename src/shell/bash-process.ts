/** One running bash: lines in, a report after each, what it saved last, and how it ended. Knows nothing of sessions. */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Readable, Writable } from 'node:stream'
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
/** For what the process wrote just before its end. */
const LINGER_MS = 50
/** A process that is stuck in the kernel (a file system that does not answer) may not end for as long as that is so. */
const KILL_MS = 1000
const NAMESPACE_END_MS = 500
const NAMESPACE_LOOK_MS = 1

type Asked = { readonly serial: number; readonly resolve: (report: Report | undefined) => void }

export type BashExit = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** It was killed, and the kernel has not ended it. */
  readonly isStuck?: true
}

export class BashProcess {
  readonly #child: ChildProcess
  readonly #input: Writable
  readonly #reports: ThrottledReader
  /** By their tokens. */
  readonly #pending = new Map<string, Asked>()
  #serial = 0
  #isGone = false
  #hasReported = false
  #lastBackgroundPid = ''
  readonly #generations: Launch['generations']
  /** Its pid may be another process's by now. */
  #hasExited = false
  #shell: ProcessEntry | undefined
  /** In a sandbox: the init of the shell's PID namespace, with whose end all others of it are gone. */
  #init: ProcessEntry | undefined
  /** Processes that outlived the command that started them, so none of a later command's. */
  #background: ProcessEntry[] = []
  /** Those of them that nobody has asked for yet. */
  #newBackground: ProcessEntry[] = []
  #diagnostics = ''

  /**
   * Resolves when the process is gone, in a sandbox with all that it started, or could not be ended; rejects when there
   * was none. Not when its pipes close: children hold those.
   */
  readonly ended: Promise<BashExit>
  readonly #end = Promise.withResolvers<BashExit>()
  exit: BashExit | undefined
  /** A script that brings back the state after the last command. */
  savedState: Buffer | undefined

  /** Starts it at once. */
  constructor(launch: Launch, env: Readonly<Record<string, string>>) {
    const [file = '', ...args] = launch.argv
    // Its end is that of the process: a shell's background children may hold the pipes for ever.
    this.#child = spawn(file, args, {
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
    // A shell that ended is told by `ended`.
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
    this.#reports.resume()
    this.#input.write(lines + reportScript(token, this.#lastBackgroundPid))
    return new Promise((resolve) => this.#pending.set(token, { serial, resolve }))
  }

  /** What runs in it now but what earlier commands left running. */
  foreground(): ProcessEntry[] {
    const isKnown = (entry: ProcessEntry) => this.#background.some((known) => isSame(known, entry))
    const shell = this.entry
    return shell ? findDescendants(shell.pid, isKnown) : []
  }

  /** All that it started and that is still below it; in a sandbox, also what has left its process tree. */
  descendants(): ProcessEntry[] {
    const shell = this.entry
    if (!shell) return []
    return findDescendants((this.#init ?? shell).pid).filter(({ pid }) => pid !== shell.pid)
  }

  /** Whether its end was also that of processes it had in the background. */
  get endedBackground(): boolean {
    return this.#init !== undefined && this.#background.length > 0
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
    const entries = [this.#init?.pid, this.entry?.pid]
    return [this.#child.pid, ...entries].filter((pid) => pid !== undefined)
  }

  /** The pid on this side of a sandbox of what the shell itself counts as `ownPid`; never one outside of the sandbox. */
  hostPidOf(ownPid: string): number | undefined {
    const shell = this.entry
    return shell && findByOwnPid((this.#init ?? shell).pid, ownPid)
  }

  /** Of the program that was started, which need not be the shell itself; undefined when the start failed. */
  get launchedPid(): number | undefined {
    return this.#child.pid
  }

  /** The shell, as the kernel tells by which process started which: what the shell says of itself decides nothing. */
  get entry(): ProcessEntry | undefined {
    if (this.#isGone || this.#child.pid === undefined) return undefined
    if (this.#shell) return findSame(this.#shell)
    if (this.#hasExited) return undefined
    if (this.#generations > 0) this.#init = findFirstborn(this.#child.pid, 1)
    const shell = findFirstborn(this.#child.pid, this.#generations)
    // Before it has reported, there may be others in its place: those that set the sandbox up.
    if (this.#hasReported) this.#shell = shell
    return shell
  }

  /** Of the shell, as it was last seen: to be told, not to be signalled. Looks nothing up once the shell is known. */
  get pid(): number | undefined {
    return this.#isGone ? undefined : (this.#shell ?? this.entry)?.pid
  }

  signal(signal: NodeJS.Signals): void {
    const { entry } = this
    if (entry) signalProcess(entry, signal)
  }

  /** Closes its input, as one closes a terminal, and resolves when it is gone. */
  async end(): Promise<void> {
    const timer = setTimeout(() => void this.kill(), HANG_UP_MS)
    // What it reports now comes after the state that the last command left.
    await this.send('')
    this.#input.end()
    await this.ended
    clearTimeout(timer)
  }

  /**
   * Ends it and what its command runs; in a sandbox, all that is in it. Resolves within `KILL_MS` and the end of the
   * namespace: when it is gone, or the kernel did not end it by then. Never rejects.
   */
  async kill(): Promise<void> {
    const below = this.foreground()
    const { entry } = this
    const all = [this.#init, entry, ...below].filter((each) => each !== undefined)
    for (const each of all) signalProcess(each, 'SIGKILL')
    // While the sandbox is being set up there may be nothing else to end yet.
    if (!entry) this.#child.kill('SIGKILL')
    const timer = setTimeout(() => this.#giveUp(), KILL_MS)
    await this.ended.catch(() => {})
    clearTimeout(timer)
  }

  #giveUp(): void {
    this.#child.kill('SIGKILL')
    // Only an exit that is told meanwhile is the better answer.
    setTimeout(() => this.#settle({ code: null, signal: 'SIGKILL', isStuck: true }), LINGER_MS)
  }

  #watchEnd(): Promise<BashExit> {
    const { promise, reject } = this.#end
    this.#child.once('error', reject)
    this.#child.once('exit', (code, signal) => void this.#settleEnd({ code, signal }))
    // Who waits for a report hears of a failed start there.
    promise.catch(() => this.#release())
    return promise
  }

  async #settleEnd(exit: BashExit): Promise<void> {
    this.#hasExited = true
    // First whatever it had written before.
    await this.#reports.catchUp()
    await this.#endNamespace()
    this.#settle(exit)
  }

  /** The first end that is told is the one that counts. */
  #settle(exit: BashExit): void {
    this.exit ??= exit
    this.#release()
    this.#end.resolve(this.exit)
  }

  /** The kernel ends what is left in it, but after the exit was told. */
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
    // Children may hold the other ends of these for ever.
    setTimeout(() => this.#child.stdio.forEach((stream) => stream?.destroy()), LINGER_MS).unref()
  }

  #handleReport(report: Report, token: string): void {
    const asked = this.#pending.get(token)
    if (!asked) return
    this.#hasReported = true
    const isNewBackground = report.lastBackgroundPid !== this.#lastBackgroundPid
    this.#lastBackgroundPid = report.lastBackgroundPid
    if (isNewBackground) this.markBackground()
    // An interrupt can eat the line that asks for a report; the next one then answers for it too.
    for (const [each, { serial, resolve }] of this.#pending) {
      if (serial > asked.serial) continue
      this.#pending.delete(each)
      resolve(report)
    }
    // The state follows, in many small pieces, and nobody waits for it.
    if (this.#pending.size === 0) this.#reports.pause()
  }
}

/** The process as it is now, unless another one has its pid by now. */
function findSame(known: ProcessEntry): ProcessEntry | undefined {
  const now = findProcess(known.pid)
  return now && isSame(now, known) ? now : undefined
}

function isSame(one: ProcessEntry, other: ProcessEntry): boolean {
  return one.pid === other.pid && one.startTime === other.startTime
}

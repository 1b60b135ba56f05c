/** The running commands of one conversation, and the limit messages for each of them or the next one. */
import type { ShellResult } from '../shell/shell.ts'
import type { CgroupEvents } from './cgroup.ts'
import type { ExceededLimit, LimitValues } from '../shell/limit-values.ts'
import { tellBytes } from '../shell/limit-values.ts'

/** What a command may write if the disk limit is already exceeded when it begins: enough for one that deletes files. */
const SLACK_BYTES = 1024 ** 2

export type RunningCommand = {
  readonly signal: AbortSignal
  /** Call it when the command begins. */
  readonly begin: () => void
  /** Call it once, with its result: it does not run any more. */
  readonly finish: (result: ShellResult) => ShellResult
  readonly [Symbol.dispose]: () => void
}

/** `measuredFrom`: the time when the measurement began. */
type MeasuredDisk = { readonly usedBytes: number; readonly measuredFrom: number }

type Running = {
  readonly stop: AbortController
  /** Undefined before it begins. */
  before: CgroupEvents | undefined
  /** The time on the clock of `performance.now()`; Infinity before it begins. */
  beganAt: number
  /** What was used when it began. */
  diskBytes: number
  exceeded: ExceededLimit | undefined
}

export type RunningCommandsOptions = {
  readonly limits: LimitValues
  /** See `LimitMeans`. */
  readonly ownProcesses: number | undefined
  readonly events: () => CgroupEvents
  readonly usedDiskBytes: () => number
}

export class RunningCommands {
  readonly #options: RunningCommandsOptions
  readonly #running = new Set<Running>()
  /** The events for the next result, from while no command ran. */
  #news: ExceededLimit[] = []

  constructor(options: RunningCommandsOptions) {
    this.#options = options
  }

  /** True if any command runs that was not stopped. */
  get areAny(): boolean {
    return this.#running.values().some(({ exceeded }) => !exceeded)
  }

  add(signal: AbortSignal): RunningCommand {
    const { events, usedDiskBytes } = this.#options
    const stop = new AbortController()
    const running: Running = {
      stop,
      before: undefined,
      beganAt: Infinity,
      diskBytes: usedDiskBytes(),
      exceeded: undefined,
    }
    const onAbort = () => stop.abort(signal.reason)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    this.#running.add(running)
    return {
      signal: stop.signal,
      begin() {
        running.before = events()
        running.beganAt = performance.now()
        running.diskBytes = usedDiskBytes()
      },
      finish: (result) => this.#tell(running, result),
      [Symbol.dispose]: () => {
        signal.removeEventListener('abort', onAbort)
        this.#running.delete(running)
      },
    }
  }

  /** Reports the cause to the running commands; if there are none, to the next one. */
  tellAll(exceededLimit: ExceededLimit): void {
    if (this.#running.size === 0) this.#news.push(exceededLimit)
    for (const running of this.#running) running.exceeded ??= exceededLimit
  }

  /**
   * Stops the commands during which the disk limit was exceeded. Returns true if there were any. What was measured from a
   * time before a command began is not of that command. `measuredFrom`: on the clock of `performance.now()`.
   */
  stopWriters({ usedBytes, measuredFrom }: MeasuredDisk, exceededLimit: ExceededLimit): boolean {
    const { diskBytes: limit = Infinity } = this.#options.limits
    for (const one of this.#running) if (measuredFrom < one.beganAt) one.diskBytes = Math.max(one.diskBytes, usedBytes)
    const isWriter = (one: Running) => !one.exceeded && usedBytes > Math.max(limit, one.diskBytes + SLACK_BYTES)
    const writers = [...this.#running].filter(isWriter)
    for (const writer of writers) {
      writer.exceeded = exceededLimit
      writer.stop.abort()
    }
    return writers.length > 0
  }

  #tell(running: Running, result: ShellResult): ShellResult {
    this.#running.delete(running)
    const metLimits = this.#eventsSince(running.before)
    const [first] = metLimits
    // A command that succeeded nevertheless gets a note instead of an error.
    const exceededLimit = running.exceeded ?? (first && result.exitCode !== 0 ? first : undefined)
    const reports = [...this.#news.splice(0), ...(running.exceeded ? [running.exceeded] : []), ...metLimits]
    const note = [...new Set(reports.map(({ message }) => message)), result.note].filter(Boolean).join(' ')
    return {
      ...result,
      ...(running.exceeded && { interrupted: true }),
      ...(exceededLimit && { exceeded: exceededLimit }),
      ...(note && { note }),
    }
  }

  #eventsSince(before: CgroupEvents | undefined): ExceededLimit[] {
    if (!before) return []
    const { limits, ownProcesses, events } = this.#options
    const now = events()
    const metLimits: ExceededLimit[] = []
    if (now.memoryKills > before.memoryKills)
      metLimits.push({ resource: 'memory', message: tellMemory(limits, now.memoryKills - before.memoryKills) })
    if (now.forksRefused > before.forksRefused)
      metLimits.push({ resource: 'processes', message: tellForks(limits, ownProcesses) })
    return metLimits
  }
}

const tellMemory = ({ memoryBytes = 0 }: LimitValues, killCount: number) =>
  `The processes of this conversation used more memory than its limit of ${tellBytes(memoryBytes)}: ${killCount} of them ${killCount === 1 ? 'was' : 'were'} killed.`

/** The kernel does not say which of the limits it was. */
function tellForks({ processes }: LimitValues, ownProcesses: number | undefined): string {
  const own = ownProcesses === undefined ? '' : `, or all of them and the server are at theirs of ${ownProcesses}`
  return `This conversation is at its limit of ${processes} processes and threads${own}: some could not be started.`
}

/**
 * The limits of one conversation while it is open: starts its shells in its control group, tells its commands which
 * limit they reached, and checks and ends what the kernel does not limit by itself.
 */
import { constants } from 'node:os'
import type { Launch, ShellLauncher } from '../sandbox/launch.ts'
import type { CommandOptions, ShellResult, Shell, Shells, ShellsState } from '../shell/shell.ts'
import type { Cgroup, CgroupEvents } from './cgroup.ts'
import type { CgroupFactory } from './cgroup-factory.ts'
import { DiskQuota } from './disk-quota.ts'
import type { Programs } from './disk-usage.ts'
import { enterArguments, SHELL, type Rlimits } from './enter-limits.ts'
import type { ExceededLimit, LimitValues } from '../shell/limit-values.ts'
import { tellBytes } from '../shell/limit-values.ts'
import type { LimitWatch, Look } from './limit-watch.ts'
import { withLimits } from './limited-shells.ts'
import { memoryOf, sampleProcesses } from './process-usage.ts'
import { RunningCommands } from './running-commands.ts'
import { ShellTrees } from './shell-trees.ts'

/** The means that all conversations of a server share. */
export type LimitMeans = {
  readonly factory: CgroupFactory
  readonly watch: LimitWatch
  /** Absent: disk usage cannot be measured. */
  readonly programs: Programs | undefined
  /** Path of nice(1). */
  readonly nice: string | undefined
  /** Maximum number of open files of a process. */
  readonly maxOpenFiles: number
  /** How many processes and threads the server and all conversations may have together; undefined without a limit. */
  readonly ownProcesses: number | undefined
}

export type ConversationLimitsOptions = LimitMeans & {
  readonly conversationId: string
  readonly limits: LimitValues
  /** The directory in which its shells store their state. */
  readonly stateDir: string
  /** The directories that count as its disk usage: the current workdir, and its private directories. */
  readonly roots: () => readonly string[]
}

/** The number of consecutive checks at the limit after which the processes that cause it are ended. */
const PATIENCE_LOOKS = 8
/** A conversation is at its process limit from this fraction on: some processes always end while others start. */
const FULL = 0.95
/** Memory kills by the kernel within a period, before all processes are ended. */
const [MAX_KILLS, KILLS_WINDOW_MS] = [20, 10_000]
/** Bytes written over the disk limit without a running command. */
const SLACK_BYTES = 1024 ** 2
/** How long stopped commands may take before all processes are ended. */
const STOP_MS = 1000
/** Exit code of a program that wrote a file as large as RLIMIT_FSIZE. */
const FILE_TOO_LARGE = 128 + constants.signals.SIGXFSZ
const NO_EVENTS: CgroupEvents = { memoryKills: 0, forksRefused: 0 }

/**
 * Minimum per process, whatever the limit: the program that opens the proxy's socket in a sandbox reserves up to 800
 * MB.
 */
const MIN_DATA_BYTES = 1024 ** 3

export class ConversationLimits {
  /** Undefined if there is no limit. */
  readonly quota: DiskQuota | undefined
  readonly #options: ConversationLimitsOptions
  readonly #trees: ShellTrees
  readonly #running: RunningCommands
  #group: Cgroup | undefined
  #ending: Promise<void> | undefined
  #fullLooks = 0
  #kills = { since: 0, count: 0 }
  #overBytes = Infinity
  /** The time when commands were last stopped because of what they wrote. */
  #stoppedAt = -Infinity

  constructor(options: ConversationLimitsOptions) {
    const { limits, programs, roots } = options
    this.#options = options
    this.#trees = new ShellTrees(options.conversationId, options.stateDir)
    const { diskBytes: limitBytes } = limits
    if (limitBytes !== undefined && programs)
      this.quota = new DiskQuota({
        limitBytes,
        roots,
        programs,
        pids: () => this.#pids(),
        isBusy: () => this.#running.areAny,
      })
    this.#running = new RunningCommands({
      limits,
      ownProcesses: options.ownProcesses,
      events: () => this.#group?.events ?? NO_EVENTS,
      usedDiskBytes: () => this.quota?.usedBytes ?? 0,
    })
  }

  /**
   * Returns a launcher whose shells have the limits from their first instruction on. It rejects if they cannot be set.
   */
  limitLauncher(launcher: ShellLauncher): ShellLauncher {
    return {
      ...launcher,
      launch: async (argv, options) => {
        // Nothing can start in a group that is being emptied, and anything that did would be ended too.
        await this.#ending
        const doors = this.#openGroup()?.doors ?? []
        const { inside, outside } = this.#rlimits(launcher)
        const nice = this.#isEnforced('cpu') ? undefined : this.#options.nice
        const own = { ...(inside && { rlimits: inside }), isPoliteSession: nice !== undefined }
        // The session is that of the sandbox.
        const limitedArgv = inside || nice !== undefined ? [SHELL, ...enterArguments(own, argv)] : argv
        const launch = await launcher.launch(limitedArgv, options)
        const entering = [SHELL, ...enterArguments({ doors, rlimits: outside, nice }, launch.argv)]
        return this.#followed(launch, entering)
      },
    }
  }

  /**
   * Returns the same shells; their commands are stopped and informed when they exceed a limit. Closing them removes the
   * control group.
   */
  limitShells(shells: Shells): Shells {
    const close = async (state?: ShellsState) => {
      const group = this.#group
      try {
        await shells.close(state)
      } finally {
        this.#group = undefined
        await group?.end()
      }
    }
    return withLimits(shells, { limited: (shell) => this.#limited(shell), close })
  }

  /** Ends what has exceeded a limit for too long. */
  async look(look: Look): Promise<void> {
    if (this.#trees.isEmpty) return this.#options.watch.remove(this)
    const exceededLimit = this.#eventsOf(look) ?? (await this.#usageOf(look))
    if (exceededLimit) await this.#endAll(exceededLimit)
    else if (await this.quota?.look()) await this.#followDisk()
  }

  #openGroup(): Cgroup | undefined {
    const { factory, conversationId, limits } = this.#options
    if (this.#group) this.#group.makeAgain()
    else this.#group = factory.make(conversationId, limits)
    return this.#group
  }

  #isEnforced(controller: 'memory' | 'pids' | 'cpu'): boolean {
    return this.#options.factory.enforcedBy(controller) !== 'none'
  }

  /** `inside` applies in a user namespace, where the kernel counts only its processes. It never limits root's. */
  #rlimits({ isolation }: ShellLauncher): { inside: Rlimits | undefined; outside: Rlimits } {
    const { limits, maxOpenFiles } = this.#options
    const { memoryBytes, processes, diskBytes } = limits
    const isCounted = isolation !== 'none' && process.getuid?.() !== 0
    return {
      inside: isCounted && processes !== undefined && !this.#isEnforced('pids') ? { processes } : undefined,
      outside: {
        openFiles: maxOpenFiles,
        ...(memoryBytes !== undefined &&
          !this.#isEnforced('memory') && { data: Math.max(memoryBytes, MIN_DATA_BYTES) }),
        ...(diskBytes !== undefined && { fileSize: diskBytes }),
      },
    }
  }

  #followed(launch: Launch, argv: readonly string[]): Launch {
    let startedPid: number | undefined
    return {
      ...launch,
      argv,
      onSpawned: async (pid) => {
        startedPid = pid
        this.#trees.add(pid, launch.generations)
        this.#options.watch.add(this)
        await launch.onSpawned?.(pid)
      },
      onEnded: () => {
        if (startedPid !== undefined) this.#trees.delete(startedPid)
        launch.onEnded?.()
      },
      [Symbol.asyncDispose]: () => launch[Symbol.asyncDispose](),
    }
  }

  #limited(shell: Shell): Shell {
    return {
      id: shell.id,
      get cwd() {
        return shell.cwd
      },
      run: (command, options) => this.#run(shell, command, options),
      restart: () => shell.restart(),
      close: () => shell.close(),
      [Symbol.asyncDispose]: () => shell.close(),
    }
  }

  async #run(shell: Shell, command: string, options: CommandOptions): Promise<ShellResult> {
    await this.quota?.lookBefore()
    using running = this.#running.add(options.signal)
    const onStart = (pid: number | undefined) => {
      running.begin()
      options.onStart?.(pid)
    }
    const result = await shell.run(command, { ...options, signal: running.signal, onStart })
    // The command has finished: exceeding the limit is reported, but no longer ends it.
    const reportedResult = running.finish(result)
    if (this.quota) {
      await this.quota.settle({ isNeeded: result.exitCode === FILE_TOO_LARGE })
      await this.#followDisk()
    }
    return this.#withDisk(reportedResult)
  }

  #withDisk(result: ShellResult): ShellResult {
    if (!this.quota?.isOver) return result
    const state = this.quota.tell({ withNames: true })
    // The kernel ended a command that wrote a file as large as the limit, and nothing else reports it.
    const own: ExceededLimit | undefined = result.exitCode === 0 ? undefined : { resource: 'disk', message: '' }
    const exceededLimit = result.exceeded ?? own
    const advice = 'Delete files; commands that write more are ended.'
    return {
      ...result,
      ...(exceededLimit?.resource === 'disk' && {
        exceeded: { ...exceededLimit, message: join(exceededLimit.message, state) },
      }),
      note: join(result.note, state, advice),
    }
  }

  /** Returns a limit for which the kernel has refused or killed for too long. */
  #eventsOf({ load }: Look): ExceededLimit | undefined {
    const { processes = Infinity, memoryBytes = Infinity } = this.#options.limits
    // If the whole machine is below the limit, so is this conversation.
    const isFull = this.#group !== undefined && load.threads >= processes && this.#group.count >= processes * FULL
    this.#fullLooks = isFull ? this.#fullLooks + 1 : 0
    if (this.#fullLooks >= PATIENCE_LOOKS) return tellEnded('processes', `at its limit of ${processes} processes`)
    if (this.#group === undefined || load.usedMemoryBytes < memoryBytes * FULL) return undefined
    const { memoryKills } = this.#group.events
    if (performance.now() - this.#kills.since > KILLS_WINDOW_MS)
      this.#kills = { since: performance.now(), count: memoryKills }
    if (memoryKills - this.#kills.count < MAX_KILLS) return undefined
    return tellEnded('memory', `at its memory limit of ${tellBytes(memoryBytes)}`)
  }

  /** Returns a limit that is exceeded for resources that no control group limits. */
  async #usageOf({ load, processes: sample }: Look): Promise<ExceededLimit | undefined> {
    const { processes = Infinity, memoryBytes = Infinity } = this.#options.limits
    const mayBeMany = !this.#isEnforced('pids') && load.threads >= processes
    const mayBeLarge = !this.#isEnforced('memory') && load.usedMemoryBytes >= memoryBytes
    if (!mayBeMany && !mayBeLarge) return undefined
    const members = await this.#trees.members(await sample())
    const threads = members.reduce((sum, member) => sum + member.threads, 0)
    if (mayBeMany && threads > processes) return tellEnded('processes', `over its limit of ${processes} processes`)
    if (!mayBeLarge) return undefined
    const files = await this.#trees.memoryFiles()
    if ((await memoryOf(members, memoryBytes - files)) + files <= memoryBytes) return undefined
    return tellEnded('memory', `over its memory limit of ${tellBytes(memoryBytes)}`)
  }

  /** Stops commands that write beyond the limit; if more is written without a command, stops all processes. */
  async #followDisk(): Promise<void> {
    const { quota } = this
    if (!quota?.isOver) return void (this.#overBytes = Infinity)
    const isGrowing = quota.usedBytes > this.#overBytes + SLACK_BYTES
    this.#overBytes = isGrowing ? quota.usedBytes : Math.min(this.#overBytes, quota.usedBytes)
    const message = 'The command was ended, because it wrote more than the disk limit allows.'
    if (this.#running.stopWriters(quota, { resource: 'disk', message })) this.#stoppedAt = performance.now()
    const hadTime = performance.now() - this.#stoppedAt > STOP_MS
    if (isGrowing && hadTime && !this.#running.areAny) await this.#endAll(tellEnded('disk', 'over its disk limit'))
  }

  async #endAll(exceededLimit: ExceededLimit): Promise<void> {
    this.#fullLooks = 0
    this.#running.tellAll(exceededLimit)
    this.#ending = (this.#group ?? this.#trees).killAll()
    await this.#ending
  }

  async #pids(): Promise<number[]> {
    if (this.#group) return this.#group.pids
    return (await this.#trees.members(await sampleProcesses())).map(({ pid }) => pid)
  }
}

const join = (...sentences: (string | undefined)[]) => sentences.filter(Boolean).join(' ')

function tellEnded(resource: ExceededLimit['resource'], where: string): ExceededLimit {
  return { resource, message: `All processes of this conversation were ended, because it was ${where}.` }
}

/**
 * Scans the environments of all processes, once for all concurrent callers: a thousand conversations that end together
 * cost one scan of /proc per round, not a thousand. Remembers processes without marks.
 */
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { findProcess, type ProcessEntry } from './process-table.ts'

/** Environments read concurrently. */
const READ_CONCURRENCY = 4
/** The time per environment: the read can hang while its process is blocked in the kernel. */
const READ_TIMEOUT_MS = 500
/** The number of further timeouts until a read hangs; before, it is only late. One passes at once when the server stood still. */
const LATE_TIMES = 3
/** Processes scanned before other work gets a turn. */
const SLICE = 100
/**
 * How long a pid is assumed to be the same process. Before it can be reused, the kernel has to assign all others, at
 * least 32,768.
 */
const TRUST_MS = 250

export type CountedProcess<Marks> = { readonly entry: ProcessEntry; readonly marks: Marks }

type UnmarkedProcess = {
  /** Absent if its environment could not be read: it is read again. */
  readonly startTime?: string
  seenAt: number
}

/**
 * `read` parses the marks in an environment (`NAME=value`, NUL); `arrange` prepares a census for searches. `isWhole` is
 * false if processes may be missing in it: a machine that is too slow for the reads is not one without processes.
 */
export class ProcessCensus<Marks, Arranged> {
  readonly #read: (environment: string) => Marks | undefined
  readonly #arrange: (counted: readonly CountedProcess<Marks>[], isWhole: boolean) => Arranged
  readonly #readTimeoutMs: number
  readonly #ownerOf: (marks: Marks) => string
  /**
   * The key is the pid. A process without marks never gets any: only our own shells set them, before their first
   * program.
   */
  #unmarked = new Map<number, UnmarkedProcess>()
  /** The key is the pid. Marks can change when a process begins or executes a program, and their owner never does. */
  readonly #marked = new Map<number, CountedProcess<Marks> & { readonly seenAt: number }>()
  /** Pending reads: a second one of the same process would hang too, and block another thread. */
  readonly #pending = new Map<number, 'in time' | 'late' | 'hanging'>()
  #latest: Promise<unknown> = Promise.resolve()
  #next: Promise<Arranged> | undefined
  /** The owners whose processes the next scan must read again; undefined: all of them. */
  #wanted: Set<string> | undefined = new Set()

  constructor(
    read: (environment: string) => Marks | undefined,
    arrange: (counted: readonly CountedProcess<Marks>[], isWhole: boolean) => Arranged,
    ownerOf: (marks: Marks) => string,
    readTimeoutMs: number = READ_TIMEOUT_MS,
  ) {
    this.#ownerOf = ownerOf
    this.#readTimeoutMs = readTimeoutMs
    this.#read = read
    this.#arrange = arrange
  }

  /**
   * Returns a scan that began after the call, without zombies and inaccessible processes. With an `owner`,
   * what it says of the processes of other owners may be `TRUST_MS` old.
   */
  take(owner?: string): Promise<Arranged> {
    if (owner === undefined) this.#wanted = undefined
    else this.#wanted?.add(owner)
    // Do not use the scan in progress: it may have passed the process already.
    this.#next ??= this.#latest.then(() => {
      this.#next = undefined
      const wantedOwners = this.#wanted
      this.#wanted = new Set()
      const counting = this.#count(wantedOwners)
      this.#latest = counting.catch(() => {}) // its caller handles the error
      return counting
    })
    return this.#next
  }

  async #count(wantedOwners: ReadonlySet<string> | undefined): Promise<Arranged> {
    const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
    const there = new Set(pids)
    for (const knownProcesses of [this.#unmarked, this.#marked])
      for (const pid of knownProcesses.keys()) if (!there.has(pid)) knownProcesses.delete(pid)
    const countedProcesses: CountedProcess<Marks>[] = []
    let looks = 0
    let isWhole = true
    // Filter first: a promise for each known process would cost more than the check.
    const now = performance.now()
    const due = pids.filter((pid) => {
      const markedProcess = this.#marked.get(pid)
      const isWanted = markedProcess && (!wantedOwners || wantedOwners.has(this.#ownerOf(markedProcess.marks)))
      const knownProcess = isWanted ? undefined : (markedProcess ?? this.#unmarked.get(pid))
      if (!knownProcess || now - knownProcess.seenAt >= TRUST_MS) return true
      if (markedProcess) countedProcesses.push(markedProcess)
      return false
    })
    await mapBounded(due, READ_CONCURRENCY, async (pid) => {
      const knownProcess = this.#unmarked.get(pid)
      if (++looks % SLICE === 0) await yieldToLoop()
      const entry = findProcess(pid)
      if (!entry || entry.isZombie || entry.isKernelThread) return
      if (knownProcess && knownProcess.startTime === entry.startTime)
        return void (knownProcess.seenAt = performance.now())
      if (!this.#pending.has(pid)) await this.#readOf(entry)
      const markedProcess = this.#marked.get(pid)
      if (markedProcess?.entry.startTime === entry.startTime)
        countedProcesses.push({ entry, marks: markedProcess.marks })
      else if (this.#pending.get(pid) === 'late') isWhole = false
    })
    return this.#arrange(countedProcesses, isWhole)
  }

  /** Reads the environment of a process, and knows its marks then. What comes too late is known to the next scan. */
  async #readOf(entry: ProcessEntry): Promise<void> {
    const { pid } = entry
    this.#pending.set(pid, 'in time')
    const reading = readFile(`/proc/${pid}/environ`, 'utf8')
      .catch(() => undefined)
      .then((environment) => this.#keep(entry, environment))
      .finally(() => this.#pending.delete(pid))
    await settlesWithin(this.#readTimeoutMs, reading)
    if (!this.#pending.has(pid)) return
    this.#pending.set(pid, 'late')
    void this.#follow(pid, reading)
  }

  async #follow(pid: number, reading: Promise<void>): Promise<void> {
    for (let i = 0; i < LATE_TIMES; i++) if (await settlesWithin(READ_TIMEOUT_MS, reading)) return
    if (this.#pending.has(pid)) this.#pending.set(pid, 'hanging')
  }

  #keep(entry: ProcessEntry, environment: string | undefined): void {
    const { pid, startTime } = entry
    this.#unmarked.delete(pid)
    // Its environment is empty for a moment during exec.
    if (environment === '') return
    this.#marked.delete(pid)
    const marks = environment === undefined ? undefined : this.#read(environment)
    const seenAt = performance.now()
    if (marks) this.#marked.set(pid, { entry, marks, seenAt })
    else this.#unmarked.set(pid, { seenAt, ...(environment !== undefined && { startTime }) })
  }
}

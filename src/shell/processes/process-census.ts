/**
 * Scans the environments of all processes, once for all concurrent callers: a thousand conversations that end together
 * cost one scan of /proc per round, not a thousand. Remembers processes without marks.
 */
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { findProcess, type ProcessEntry } from './process-table.ts'

/** Environments read concurrently. */
const READ_CONCURRENCY = 4
/** Per environment: the read can hang while its process is blocked in the kernel. */
const READ_TIMEOUT_MS = 500
/** Processes scanned before other work gets a turn. */
const SLICE = 100
/**
 * How long a pid is assumed to be the same process. Before it can be reused, the kernel has to assign all others, at
 * least 32,768.
 */
const TRUST_MS = 250

export type Counted<Marks> = { readonly entry: ProcessEntry; readonly marks: Marks }

type Unmarked = {
  /** Absent if its environment could not be read: it is read again. */
  readonly startTime?: string
  seenAt: number
}

/** `read` parses the marks in an environment (`NAME=value`, NUL); `arrange` prepares a census for searches. */
export class ProcessCensus<Marks, Arranged> {
  readonly #read: (environment: string) => Marks | undefined
  readonly #arrange: (counted: readonly Counted<Marks>[]) => Arranged
  /** By pid. A process without marks never gets any: only our own shells set them, before their first program. */
  #unmarked = new Map<number, Unmarked>()
  /** Pending reads: a second one of the same process would hang too, and block another thread. */
  readonly #hanging = new Set<number>()
  #underWay: Promise<unknown> = Promise.resolve()
  #next: Promise<Arranged> | undefined

  constructor(
    read: (environment: string) => Marks | undefined,
    arrange: (counted: readonly Counted<Marks>[]) => Arranged,
  ) {
    this.#read = read
    this.#arrange = arrange
  }

  /** Returns a scan that began after the call, without zombies and inaccessible processes. */
  take(): Promise<Arranged> {
    // Do not use the scan in progress: it may have passed the process already.
    this.#next ??= this.#underWay.then(() => {
      this.#next = undefined
      const taken = this.#count().then(this.#arrange)
      this.#underWay = taken.catch(() => {}) // its caller handles the error
      return taken
    })
    return this.#next
  }

  async #count(): Promise<Counted<Marks>[]> {
    const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
    const there = new Set(pids)
    for (const pid of this.#unmarked.keys()) if (!there.has(pid)) this.#unmarked.delete(pid)
    const counted: Counted<Marks>[] = []
    let looks = 0
    await mapBounded(pids, READ_CONCURRENCY, async (pid) => {
      const known = this.#unmarked.get(pid)
      if (known && performance.now() - known.seenAt < TRUST_MS) return
      if (++looks % SLICE === 0) await nextTurn()
      const entry = findProcess(pid)
      if (!entry || entry.isZombie || entry.isKernelThread || this.#hanging.has(pid)) return
      if (known && known.startTime === entry.startTime) return void (known.seenAt = performance.now())
      const marks = await this.#marksOf(entry)
      if (marks) counted.push({ entry, marks })
    })
    return counted
  }

  async #marksOf({ pid, startTime }: ProcessEntry): Promise<Marks | undefined> {
    this.#unmarked.delete(pid)
    this.#hanging.add(pid)
    const reading = readFile(`/proc/${pid}/environ`, 'utf8')
      .catch(() => undefined)
      .finally(() => this.#hanging.delete(pid))
    const environment = (await settlesWithin(READ_TIMEOUT_MS, reading)) ? await reading : undefined
    // During exec its environment is empty for a moment.
    if (environment === '') return undefined
    const marks = environment === undefined ? undefined : this.#read(environment)
    const seenAt = performance.now()
    if (!marks) this.#unmarked.set(pid, { seenAt, ...(environment !== undefined && { startTime }) })
    return marks
  }
}

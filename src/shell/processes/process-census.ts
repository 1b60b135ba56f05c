/**
 * Looks at the environments of all processes, once for everybody who asks at the same time: a thousand conversations that
 * end together cost one look at /proc per round, not a thousand. Processes without marks are remembered.
 */
import { readdir, readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { findProcess, type ProcessEntry } from './process-table.ts'

/** Environments read at the same time. */
const READ_CONCURRENCY = 4
/** Of one environment: the read can hang while its process is stuck in the kernel. */
const READ_TIMEOUT_MS = 500
/** Processes looked at before others get a turn. */
const SLICE = 100
/**
 * For so long a pid is taken for the process that it was. Before it can be used again, the kernel has to hand out all
 * others, at least 32,768.
 */
const TRUST_MS = 250

export type Counted<Marks> = { readonly entry: ProcessEntry; readonly marks: Marks }

type Unmarked = {
  /** Absent when its environment could not be read: it is read again. */
  readonly startTime?: string
  seenAt: number
}

/** `read` finds the marks in an environment (`NAME=value`, NUL); `arrange` prepares a census for those who search in it. */
export class ProcessCensus<Marks, Arranged> {
  readonly #read: (environment: string) => Marks | undefined
  readonly #arrange: (counted: readonly Counted<Marks>[]) => Arranged
  /** By pid. A process without marks gets none later: only our own shells set them, before their first program. */
  #unmarked = new Map<number, Unmarked>()
  /** Reads that hang: a second one of the same process would hang too, and take another thread. */
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

  /** Of a moment after the call, without zombies and processes that we may not look into. */
  take(): Promise<Arranged> {
    // Not the one that is under way: it may have passed what the caller looks for.
    this.#next ??= this.#underWay.then(() => {
      this.#next = undefined
      const taken = this.#count().then(this.#arrange)
      this.#underWay = taken.catch(() => {}) // who asked for it is told
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
    // While it executes a program it has an empty one for a moment.
    if (environment === '') return undefined
    const marks = environment === undefined ? undefined : this.#read(environment)
    const seenAt = performance.now()
    if (!marks) this.#unmarked.set(pid, { seenAt, ...(environment !== undefined && { startTime }) })
    return marks
  }
}

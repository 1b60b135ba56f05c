/**
 * The control groups of one conversation: creates them with their limits, reads their counters, kills their processes
 * and removes them.
 */
import { existsSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeDirectoriesSync } from '../files/make-directories.ts'
import type { CgroupRoot, Controller } from './cgroup-roots.ts'
import { isWritable, readIfAny } from './cgroup-roots.ts'
import { CounterFile } from './counter-file.ts'
import type { LimitValues } from '../shell/limit-values.ts'

const PERIOD_US = 100_000
/** The weight of a conversation; 100 is the kernel's default. */
const WEIGHT = 25
/** The processor weight in version 1, where a process outside all groups has 1024. */
const SHARES = 256
/**
 * Processes end soon after SIGKILL; one that is blocked in the kernel is not waited for. A number of looks and not a time,
 * which passes also while this process is stopped.
 */
const LOOKS = 100
const LOOK_MS = 10

/** Event counters since its creation. */
export type CgroupEvents = {
  /** Processes that the kernel killed because the memory limit was reached. */
  readonly memoryKills: number
  /** Forks refused because of the process limit. */
  readonly forksRefused: number
}

export class Cgroup {
  readonly #places: readonly CgroupRoot[]
  readonly #name: string
  readonly #limits: LimitValues
  readonly #memoryEvents: CounterFile | undefined
  readonly #pidsEvents: CounterFile | undefined

  /** Has no effect; `make` creates the groups. */
  constructor(places: readonly CgroupRoot[], name: string, limits: LimitValues = {}) {
    this.#places = places
    this.#name = name
    this.#limits = limits
    const [memory, pids] = [this.#find('memory'), this.#find('pids')]
    const memoryFile = memory?.version === 2 ? 'memory.events' : 'memory.oom_control'
    this.#memoryEvents = memory && new CounterFile(join(this.#in(memory), memoryFile))
    this.#pidsEvents = pids && new CounterFile(join(this.#in(pids), 'pids.events'))
  }

  /** Creates the directories and sets the limits; throws if that fails, and then leaves nothing behind. */
  make(): void {
    try {
      for (const place of this.#places) {
        makeDirectoriesSync(this.#in(place))
        for (const [file, value, isOptional] of settingsFor(place, this.#limits))
          this.#set(place, file, String(value), isOptional)
      }
    } catch (error) {
      this.#removeNow()
      throw error
    }
  }

  /** Creates what is missing: another server removes an old empty group as abandoned. */
  makeAgain(): void {
    if (this.doors.every((door) => existsSync(door))) return
    this.#memoryEvents?.close()
    this.#pidsEvents?.close()
    this.make()
  }

  /** A process that writes `0` to each of them enters the group, with everything it starts. */
  get doors(): string[] {
    return this.#places.map((place) => join(this.#in(place), 'cgroup.procs'))
  }

  /** Number of processes and threads; 0 if they are not counted. */
  get count(): number {
    const pids = this.#find('pids')
    return Number((pids && this.#read(pids, 'pids.current')) ?? 0)
  }

  get events(): CgroupEvents {
    return {
      memoryKills: numberIn(this.#memoryEvents?.read(), /^oom_kill (\d+)$/m),
      forksRefused: numberIn(this.#pidsEvents?.read(), /^max (\d+)$/m),
    }
  }

  /** Pids on the host. */
  get pids(): number[] {
    const all = this.#places.flatMap((place) => this.#read(place, 'cgroup.procs').split('\n').filter(Boolean))
    return [...new Set(all.map(Number))]
  }

  /** Kills all processes in it; resolves when none is left, or after a time limit. */
  async killAll(): Promise<void> {
    const pids = this.#find('pids')
    // A frozen process cannot start another.
    if (pids) this.#set(pids, 'pids.max', '0', true)
    const unifiedRoot = this.#places.find(({ version }) => version === 2)
    for (let look = 0; look < LOOKS; look++, await delay(LOOK_MS)) {
      const alive = this.pids
      if (alive.length === 0) break
      if (unifiedRoot) this.#set(unifiedRoot, 'cgroup.kill', '1', true)
      for (const pid of alive) kill(pid)
    }
    if (pids) this.#set(pids, 'pids.max', String(this.#limits.processes ?? 'max'), true)
  }

  /**
   * Kills all processes in it and removes it. Also resolves if the kernel is not finished with it: the next start
   * cleans up.
   */
  async end(): Promise<void> {
    await this.killAll()
    for (let look = 0; look < LOOKS && !this.#removeNow(); look++) await delay(LOOK_MS)
  }

  #find(controller: 'memory' | 'pids'): CgroupRoot | undefined {
    return this.#places.find(({ controllers }) => controllers.has(controller))
  }

  #in(place: CgroupRoot): string {
    return join(place.directory, this.#name)
  }

  #read(place: CgroupRoot, file: string): string {
    return readIfAny(join(this.#in(place), file))
  }

  #set(place: CgroupRoot, file: string, value: string, isOptional: boolean): void {
    const path = join(this.#in(place), file)
    if (isOptional && !isWritable(path)) return
    try {
      writeFileSync(path, value)
    } catch (error) {
      if (!isOptional) throw error
    }
  }

  /** Returns true if nothing of it is left. */
  #removeNow(): boolean {
    this.#memoryEvents?.close()
    this.#pidsEvents?.close()
    return this.#places.map((place) => removeGroup(this.#in(place))).every(Boolean)
  }
}

/** An optional one is skipped if the kernel has no such file. */
type Setting = readonly [file: string, value: string | number, isOptional: boolean]

function settingsFor({ version, controllers }: CgroupRoot, limits: LimitValues): Setting[] {
  const settings = version === 2 ? settingsV2(limits) : settingsV1(limits)
  return [...controllers].flatMap((controller) => settings[controller])
}

type Settings = Readonly<Record<Controller, readonly Setting[]>>

function settingsV2({ memoryBytes, processes, cpus }: LimitValues): Settings {
  return {
    // No swap: otherwise the excess would go to disk and slow everything down.
    memory: ifGiven(memoryBytes, (bytes) => [
      ['memory.max', bytes, false],
      ['memory.swap.max', 0, true],
    ]),
    pids: ifGiven(processes, (count) => [['pids.max', count, false]]),
    cpu: [
      ['cpu.weight', WEIGHT, true],
      ...ifGiven(cpus, (count) => [['cpu.max', `${quotaOf(count)} ${PERIOD_US}`, false]]),
    ],
    io: [['io.weight', WEIGHT, true]],
  }
}

function settingsV1({ memoryBytes, processes, cpus }: LimitValues): Settings {
  return {
    // The second limit is for memory and swap together.
    memory: ifGiven(memoryBytes, (bytes) => [
      ['memory.limit_in_bytes', bytes, false],
      ['memory.memsw.limit_in_bytes', bytes, true],
    ]),
    pids: ifGiven(processes, (count) => [['pids.max', count, false]]),
    cpu: [
      ['cpu.shares', SHARES, true],
      ...ifGiven(cpus, (count) => [
        ['cpu.cfs_period_us', PERIOD_US, false],
        ['cpu.cfs_quota_us', quotaOf(count), false],
      ]),
    ],
    io: [
      ['blkio.weight', WEIGHT, true],
      ['blkio.bfq.weight', WEIGHT, true],
    ],
  }
}

function ifGiven(limit: number | undefined, settings: (limit: number) => readonly Setting[]): readonly Setting[] {
  return limit === undefined ? [] : settings(limit)
}

const quotaOf = (cpus: number) => Math.round(cpus * PERIOD_US)

const numberIn = (text: string | undefined, pattern: RegExp) => Number(pattern.exec(text ?? '')?.[1] ?? 0)

/** Returns true if it is gone; a group with processes stays. */
export function removeGroup(directory: string): boolean {
  try {
    rmdirSync(directory)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

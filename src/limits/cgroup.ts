/** The control groups of one conversation: made with their limits, looked at, emptied and removed. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { CgroupRoot, Controller } from './cgroup-roots.ts'
import { isWritable, readIfAny } from './cgroup-roots.ts'
import { CounterFile } from './counter-file.ts'
import type { LimitValues } from '../shell/limit-values.ts'

const PERIOD_US = 100_000
/** The share of a conversation beside others, where 100 is what a group gets that says nothing. */
const WEIGHT = 25
/** The same for processors in version 1, where a process outside of all groups counts 1024. */
const SHARES = 256
/** Processes end soon after their SIGKILL; one that is stuck in the kernel is not waited for. */
const END_TIMEOUT_MS = 1000
const LOOK_MS = 10

/** What has happened in it since it was made. */
export type CgroupEvents = {
  /** Processes that the kernel killed because memory was used up. */
  readonly memoryKills: number
  /** Forks refused because of the number of processes. */
  readonly forksRefused: number
}

export class Cgroup {
  readonly #places: readonly CgroupRoot[]
  readonly #name: string
  readonly #limits: LimitValues
  readonly #memoryEvents: CounterFile | undefined
  readonly #pidsEvents: CounterFile | undefined

  /** Without effect: `make` makes it. */
  constructor(places: readonly CgroupRoot[], name: string, limits: LimitValues = {}) {
    this.#places = places
    this.#name = name
    this.#limits = limits
    const [memory, pids] = [this.#find('memory'), this.#find('pids')]
    const memoryFile = memory?.version === 2 ? 'memory.events' : 'memory.oom_control'
    this.#memoryEvents = memory && new CounterFile(join(this.#in(memory), memoryFile))
    this.#pidsEvents = pids && new CounterFile(join(this.#in(pids), 'pids.events'))
  }

  /** Makes the directories and sets the limits; throws when it cannot, and then leaves nothing behind. */
  make(): void {
    try {
      for (const place of this.#places) {
        mkdirSync(this.#in(place), { recursive: true })
        for (const [file, value, isOptional] of settingsFor(place, this.#limits))
          this.#set(place, file, String(value), isOptional)
      }
    } catch (error) {
      this.#removeNow()
      throw error
    }
  }

  /** Makes what of it is missing: another server takes an empty one that is old for one that was left behind. */
  makeAgain(): void {
    if (this.doors.every((door) => existsSync(door))) return
    this.#memoryEvents?.close()
    this.#pidsEvents?.close()
    this.make()
  }

  /** Whoever writes `0` to each of them is in the group, and so is all that it starts. */
  get doors(): string[] {
    return this.#places.map((place) => join(this.#in(place), 'cgroup.procs'))
  }

  /** Processes and threads; 0 where nobody counts them. */
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

  /** As the host counts. */
  get pids(): number[] {
    const all = this.#places.flatMap((place) => this.#read(place, 'cgroup.procs').split('\n').filter(Boolean))
    return [...new Set(all.map(Number))]
  }

  /** Kills all that is in it; resolves when nothing is left, or after a time. */
  async killAll(): Promise<void> {
    const pids = this.#find('pids')
    // Nothing can start another meanwhile.
    if (pids) this.#set(pids, 'pids.max', '0', true)
    const unified = this.#places.find(({ version }) => version === 2)
    for (const deadline = performance.now() + END_TIMEOUT_MS; performance.now() < deadline; await delay(LOOK_MS)) {
      const alive = this.pids
      if (alive.length === 0) break
      if (unified) this.#set(unified, 'cgroup.kill', '1', true)
      for (const pid of alive) kill(pid)
    }
    if (pids) this.#set(pids, 'pids.max', String(this.#limits.processes ?? 'max'), true)
  }

  /** Kills all that is in it and removes it. Resolves also when the kernel is not done with it: the next start sweeps. */
  async end(): Promise<void> {
    await this.killAll()
    for (const deadline = performance.now() + END_TIMEOUT_MS; !this.#removeNow(); await delay(LOOK_MS))
      if (performance.now() > deadline) return
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

  /** Answers whether nothing of it is left. */
  #removeNow(): boolean {
    this.#memoryEvents?.close()
    this.#pidsEvents?.close()
    return this.#places.map((place) => removeGroup(this.#in(place))).every(Boolean)
  }
}

/** An optional one is passed over where the kernel has no such file. */
type Setting = readonly [file: string, value: string | number, isOptional: boolean]

function settingsFor({ version, controllers }: CgroupRoot, limits: LimitValues): Setting[] {
  const settings = version === 2 ? settingsV2(limits) : settingsV1(limits)
  return [...controllers].flatMap((controller) => settings[controller])
}

type Settings = Readonly<Record<Controller, readonly Setting[]>>

function settingsV2({ memoryBytes, processes, cpus }: LimitValues): Settings {
  return {
    // Without swap: what does not fit would go to the disk, and take the time of all.
    memory: given(memoryBytes, (bytes) => [
      ['memory.max', bytes, false],
      ['memory.swap.max', 0, true],
    ]),
    pids: given(processes, (count) => [['pids.max', count, false]]),
    cpu: [
      ['cpu.weight', WEIGHT, true],
      ...given(cpus, (count) => [['cpu.max', `${quotaOf(count)} ${PERIOD_US}`, false]]),
    ],
    io: [['io.weight', WEIGHT, true]],
  }
}

function settingsV1({ memoryBytes, processes, cpus }: LimitValues): Settings {
  return {
    // The second is for memory and swap together.
    memory: given(memoryBytes, (bytes) => [
      ['memory.limit_in_bytes', bytes, false],
      ['memory.memsw.limit_in_bytes', bytes, true],
    ]),
    pids: given(processes, (count) => [['pids.max', count, false]]),
    cpu: [
      ['cpu.shares', SHARES, true],
      ...given(cpus, (count) => [
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

function given(limit: number | undefined, settings: (limit: number) => readonly Setting[]): readonly Setting[] {
  return limit === undefined ? [] : settings(limit)
}

const quotaOf = (cpus: number) => Math.round(cpus * PERIOD_US)

const numberIn = (text: string | undefined, pattern: RegExp) => Number(pattern.exec(text ?? '')?.[1] ?? 0)

/** Answers whether it is gone; one with processes in it stays. */
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

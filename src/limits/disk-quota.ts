/**
 * Measures how much disk one conversation uses, and whether that exceeds its limit. Measures again only when the free
 * space of its disks has shrunk enough to matter, or after a while; bytes written by the server are added in between.
 */
import { statfs } from 'node:fs/promises'
import { settlesWithin } from '../lib/bounded-wait.ts'
import type { Programs } from './disk-usage.ts'
import { ENTRY_BYTES, findLargest, measureDisk, measureNameless } from './disk-usage.ts'
import { tellBytes } from '../shell/limit-values.ts'

/**
 * Maximum age of a measurement, because the free space may not change while one conversation writes what another
 * deletes.
 */
const MAX_AGE_MS = { whenIdle: 30_000, whenBusy: 2000 }
/** Maximum fraction of the time spent on such measurements. */
const IDLE_DUTY = 0.05
/** The fraction of the remaining space that may be used before the next measurement. */
const PART = 0.25
/** Maximum fraction of the time spent measuring. */
const DUTY = 0.25
const MIN_PAUSE_MS = 50
/** The number of bytes below which deleted open files are not searched. */
const UNEXPLAINED_BYTES = 16 * 1024 ** 2
/** The longest that a result waits for the measurement after its command. */
const PATIENCE_MS = 2000

export type DiskQuotaOptions = {
  readonly limitBytes: number
  /** The current workdir and the conversation's private directories. They need not exist. */
  readonly roots: () => readonly string[]
  readonly programs: Programs
  /** Pids of all processes in the conversation. */
  readonly pids: () => Promise<readonly number[]>
  /** Returns true if a command runs. */
  readonly isBusy: () => boolean
}

export class DiskQuota {
  readonly limitBytes: number
  readonly #options: DiskQuotaOptions
  /** The result of the last measurement; undefined before the first. */
  #measuredBytes: number | undefined
  /** Written by the server since that measurement began. */
  #addedBytes = 0
  #why: string | undefined
  /** The free bytes of each root, at the last measurement. */
  #freeBytes: ReadonlyMap<string, number> = new Map()
  #measuredAt = -Infinity
  #measuredFrom = -Infinity
  #tookMs = 0
  #lookedAt = -Infinity
  #measuring: Promise<void> | undefined
  #largest = ''
  /** True if a command has ended since, and may have written. */
  #isOwed = false
  /** True if deleted open files were found the last time. */
  #hasNameless = false

  constructor(options: DiskQuotaOptions) {
    this.#options = options
    this.limitBytes = options.limitBytes
  }

  get usedBytes(): number {
    return (this.#measuredBytes ?? 0) + this.#addedBytes
  }

  /** The time when the last measurement began, on the clock of `performance.now()`. */
  get measuredFrom(): number {
    return this.#measuredFrom
  }

  get isOver(): boolean {
    return this.usedBytes > this.limitBytes || this.#why !== undefined
  }

  /**
   * Describes usage and limit in a sentence. File names come from the agent: include them only for readers who see them
   * anyway.
   */
  tell({ withNames }: { withNames: boolean }): string {
    const usedText = this.#why ?? `it uses ${tellBytes(this.usedBytes)}`
    const sentence = `The disk limit of this conversation is ${tellBytes(this.limitBytes)}, and ${usedText}.`
    return withNames && this.#largest ? `${sentence} Largest: ${this.#largest}.` : sentence
  }

  /** Measures if there is a reason to. Returns true if it has. */
  async look(): Promise<boolean> {
    if (this.#measuring) {
      await this.#measuring
      return true
    }
    const isDue = await this.#isDue()
    this.#lookedAt = performance.now()
    if (!isDue) return false
    await this.#measure()
    return true
  }

  /** Call it before a command begins: measures what an earlier one left, if it has just ended. */
  async lookBefore(): Promise<void> {
    if (!this.isOver && performance.now() - this.#lookedAt < MIN_PAUSE_MS) return
    await this.lookBriefly({ isNeeded: false })
  }

  /** Measures if there is a reason to, or if `isNeeded`, but returns in time; the measurement continues. */
  async lookBriefly({ isNeeded }: { isNeeded: boolean }): Promise<void> {
    await settlesWithin(PATIENCE_MS, isNeeded ? this.#lookNow() : this.look())
  }

  /** Returns the bytes that may still be written. */
  async room(): Promise<number> {
    await this.lookBriefly({ isNeeded: this.isOver || this.#isOwed })
    return this.isOver ? 0 : this.limitBytes - this.usedBytes
  }

  /** Call it after a command: what it wrote is measured, now or soon. */
  async settle({ isNeeded }: { isNeeded: boolean }): Promise<void> {
    this.#isOwed = true
    await this.lookBriefly({ isNeeded: isNeeded || this.isOver })
  }

  /** Adds bytes that the server itself has written. */
  add(bytes: number): void {
    this.#addedBytes += bytes + ENTRY_BYTES
  }

  async #lookNow(): Promise<void> {
    // The measurement in progress may have begun before.
    await this.#measuring
    await this.#measure()
  }

  async #isDue(): Promise<boolean> {
    const age = performance.now() - this.#measuredAt
    if (age < Math.max(MIN_PAUSE_MS, this.#tookMs / DUTY)) return false
    if (this.#measuredBytes === undefined || this.isOver) return true
    const maxAge = this.#isOwed ? 0 : this.#options.isBusy() ? MAX_AGE_MS.whenBusy : MAX_AGE_MS.whenIdle
    if (age > Math.max(maxAge, this.#tookMs / IDLE_DUTY)) return true
    const shrunkBy = this.#shrunkBy(await this.#readFree())
    return shrunkBy > (this.limitBytes - this.usedBytes) * PART
  }

  #measure(): Promise<void> {
    return (this.#measuring ??= this.#measureNow().finally(() => (this.#measuring = undefined)))
  }

  async #measureNow(): Promise<void> {
    const { programs, roots, limitBytes } = this.#options
    const before = this.#measuredBytes === undefined ? undefined : this.usedBytes
    const addedBefore = this.#addedBytes
    const began = performance.now()
    this.#isOwed = false
    const free = await this.#readFree()
    const shrunkBy = this.#shrunkBy(free)
    const measurement = await measureDisk(programs, roots()).catch((error: unknown) => ({ error }))
    if ('error' in measurement) {
      this.#why = 'what it uses could not be counted in time: there are too many files'
    } else {
      this.#why = measurement.hasUnreadable
        ? 'some of its directories cannot be read: run chmod u+rx on them'
        : undefined
      const unexplainedBytes = before === undefined ? Infinity : shrunkBy - (measurement.bytes - before)
      this.#measuredBytes = measurement.bytes + (await this.#namelessWhen(unexplainedBytes > UNEXPLAINED_BYTES))
      this.#addedBytes -= addedBefore
    }
    this.#largest = this.usedBytes > limitBytes ? await this.#tellLargest() : ''
    this.#freeBytes = free
    this.#measuredAt = performance.now()
    this.#measuredFrom = began
    this.#tookMs = this.#measuredAt - began
  }

  async #namelessWhen(isLikely: boolean): Promise<number> {
    const { pids, roots } = this.#options
    // They are counted each time once found, although the free space does not shrink for them any more.
    this.#hasNameless ||= isLikely
    if (!this.#hasNameless) return 0
    const bytes = await measureNameless(await pids(), roots())
    this.#hasNameless = bytes > 0
    return bytes
  }

  async #tellLargest(): Promise<string> {
    const largest = await findLargest(this.#options.programs, this.#options.roots())
    return largest.map(([path, bytes]) => `${JSON.stringify(path)} (${tellBytes(bytes)})`).join(', ')
  }

  /** If several roots are on one disk, it counts for each, which at worst measures too often. */
  #shrunkBy(free: ReadonlyMap<string, number>): number {
    const changes = [...free].map(([root, bytes]) => Math.max((this.#freeBytes.get(root) ?? bytes) - bytes, 0))
    return changes.reduce((sum, change) => sum + change, 0)
  }

  async #readFree(): Promise<Map<string, number>> {
    const free = new Map<string, number>()
    const read = async (root: string) => {
      const { bavail, bsize } = await statfs(root)
      free.set(root, bavail * bsize)
    }
    // Directories that do not exist yet contain nothing.
    await Promise.allSettled(this.#options.roots().map(read))
    return free
  }
}

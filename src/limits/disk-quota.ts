/**
 * How much disk one conversation uses, and whether that is more than it may. Measured again only once the free space of
 * its disks has shrunk enough to matter, or after a while; between two measurements what the server writes is added.
 */
import { statfs } from 'node:fs/promises'
import { settlesWithin } from '../lib/bounded-wait.ts'
import type { Programs } from './disk-usage.ts'
import { ENTRY_BYTES, findLargest, measureDisk, measureNameless } from './disk-usage.ts'
import { tellBytes } from '../shell/limit-values.ts'

/** The free space may stay the same while one conversation writes what another deletes. */
const MAX_AGE_MS = { whenIdle: 30_000, whenBusy: 2000 }
/** Measuring without that reason takes at most this part of the time. */
const IDLE_DUTY = 0.05
/** The part of what is left that may be used up before it is measured again. */
const PART = 0.25
/** Measuring takes at most this part of the time, however long it takes. */
const DUTY = 0.25
const MIN_PAUSE_MS = 50
/** Less than this is not looked for among files without a name. */
const UNEXPLAINED_BYTES = 16 * 1024 ** 2
/** A result does not wait longer for the measurement after its command. */
const PATIENCE_MS = 2000

export type DiskQuotaOptions = {
  readonly limitBytes: number
  /** The workdir that holds now, and the conversation's own directories. They need not exist. */
  readonly roots: () => readonly string[]
  readonly programs: Programs
  /** Of all that runs in the conversation. */
  readonly pids: () => Promise<readonly number[]>
  /** Whether a command runs. */
  readonly isBusy: () => boolean
}

export class DiskQuota {
  readonly limitBytes: number
  readonly #options: DiskQuotaOptions
  /** Undefined until it was measured. */
  #usedBytes: number | undefined
  #why: string | undefined
  /** By root, at the last measurement. */
  #freeBytes: ReadonlyMap<string, number> = new Map()
  #measuredAt = -Infinity
  #tookMs = 0
  #lookedAt = -Infinity
  #measuring: Promise<void> | undefined
  #largest = ''
  /** A command has ended since, and may have written. */
  #isOwed = false
  /** Files without a name were found, the last time. */
  #hasNameless = false

  constructor(options: DiskQuotaOptions) {
    this.#options = options
    this.limitBytes = options.limitBytes
  }

  get usedBytes(): number {
    return this.#usedBytes ?? 0
  }

  get isOver(): boolean {
    return this.usedBytes > this.limitBytes || this.#why !== undefined
  }

  /** What is used and what may be, as a sentence. Names of files are the agent's own: only for who sees them anyway. */
  tell({ withNames }: { withNames: boolean }): string {
    const used = this.#why ?? `it uses ${tellBytes(this.usedBytes)}`
    const sentence = `The disk limit of this conversation is ${tellBytes(this.limitBytes)}, and ${used}.`
    return withNames && this.#largest ? `${sentence} Largest: ${this.#largest}.` : sentence
  }

  /** Measures when there is reason to. Answers whether it has. */
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

  /** A command is to begin. Where another has just ended, what it left was looked at. */
  async lookBefore(): Promise<void> {
    if (!this.isOver && performance.now() - this.#lookedAt < MIN_PAUSE_MS) return
    await this.lookBriefly({ isNeeded: false })
  }

  /** Measures when there is reason to, or when it is said to be needed, but returns in time; the measurement goes on. */
  async lookBriefly({ isNeeded }: { isNeeded: boolean }): Promise<void> {
    await settlesWithin(PATIENCE_MS, isNeeded ? this.#lookNow() : this.look())
  }

  /** Bytes that may still be written. */
  async room(): Promise<number> {
    await this.lookBriefly({ isNeeded: this.isOver || this.#isOwed })
    return this.isOver ? 0 : this.limitBytes - this.usedBytes
  }

  /** A command has ended: what it wrote is measured, now or soon. */
  async settle({ isNeeded }: { isNeeded: boolean }): Promise<void> {
    this.#isOwed = true
    await this.lookBriefly({ isNeeded: isNeeded || this.isOver })
  }

  /** What the server itself has written. */
  add(bytes: number): void {
    if (this.#usedBytes !== undefined) this.#usedBytes += bytes + ENTRY_BYTES
  }

  async #lookNow(): Promise<void> {
    // What is under way may have begun before.
    await this.#measuring
    await this.#measure()
  }

  async #isDue(): Promise<boolean> {
    const age = performance.now() - this.#measuredAt
    if (age < Math.max(MIN_PAUSE_MS, this.#tookMs / DUTY)) return false
    if (this.#usedBytes === undefined || this.isOver) return true
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
    const before = this.#usedBytes
    const began = performance.now()
    this.#isOwed = false
    const free = await this.#readFree()
    const shrunkBy = this.#shrunkBy(free)
    const measured = await measureDisk(programs, roots()).catch((error: unknown) => ({ error }))
    if ('error' in measured) {
      this.#why = 'what it uses could not be counted in time: there are too many files'
    } else {
      this.#why = measured.hasUnreadable ? 'some of its directories cannot be read: run chmod u+rx on them' : undefined
      const unexplained = before === undefined ? Infinity : shrunkBy - (measured.bytes - before)
      this.#usedBytes = measured.bytes + (await this.#namelessWhen(unexplained > UNEXPLAINED_BYTES))
    }
    this.#largest = this.usedBytes > limitBytes ? await this.#tellLargest() : ''
    this.#freeBytes = free
    this.#measuredAt = performance.now()
    this.#tookMs = this.#measuredAt - began
  }

  async #namelessWhen(isLikely: boolean): Promise<number> {
    const { pids, roots } = this.#options
    // Once there are some they stay counted, though the free space does not shrink for them any more.
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

  /** Where several roots are on one disk it counts for each, which measures too often at worst. */
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
    // Those that do not exist yet hold nothing.
    await Promise.allSettled(this.#options.roots().map(read))
    return free
  }
}

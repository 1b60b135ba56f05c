/**
 * The stored records of a conversation's commands, with their output. Number and size are bounded: the oldest are
 * removed, except commands that run or whose idempotency key is still remembered.
 */
import { createHash } from 'node:crypto'
import { Problem } from '../../contract/problem.ts'
import { uuid7Time } from '../../lib/uuid7.ts'
import type { CommandEntry, CommandStorage } from '../../storage/storage.ts'
import { CommandRecord } from './command-record.ts'
import { KEY_LIFETIME_MS } from '../../state/idempotency.ts'

export type RecordLimits = {
  /** Records kept. */
  readonly records: number
  /** Bytes of output kept for all records together. */
  readonly outputBytes: number
}

/** Removal continues down to this part of each limit: checking all files for each command would take too long. */
const KEPT_PART = 0.9

export class CommandRecords {
  readonly #storage: CommandStorage
  readonly #limits: RecordLimits
  #used: { count: number; bytes: number } | undefined

  constructor(storage: CommandStorage, limits: RecordLimits) {
    this.#storage = storage
    this.#limits = limits
  }

  /** Replaces the stored record. With `durable`, it also survives a power failure. */
  async write(record: CommandRecord, options: { durable: boolean }): Promise<void> {
    const keyHash = record.idempotency && hashOf(record.idempotency.key)
    await this.#storage.write({ id: record.command_id, keyHash }, record, options)
  }

  async read(id: string): Promise<CommandRecord | undefined> {
    const entry = (await this.#storage.entries()).find((each) => each.id === id)
    return entry && (await this.#readEntry(entry))
  }

  /** Newest first. */
  async ids(): Promise<string[]> {
    return (await this.#storage.entries()).map(({ id }) => id).toReversed()
  }

  /** Returns the commands with that `Idempotency-Key`, oldest first. */
  async withKey(key: string): Promise<CommandRecord[]> {
    const same = (await this.#storage.entries()).filter(({ keyHash }) => keyHash === hashOf(key))
    const records = await Promise.all(same.map((entry) => this.#readEntry(entry)))
    return records.filter((record) => record !== undefined)
  }

  outputPath(id: string, stream: 'stdout' | 'stderr'): string {
    return this.#storage.outputPath(id, stream)
  }

  /** Adds bytes to the size of the stored outputs. */
  countOutput(bytes: number): void {
    if (this.#used) this.#used.bytes += bytes
  }

  /**
   * Makes room for one more by removing the oldest for which `isBusy` is false. Throws a `Problem` if none can be
   * removed.
   */
  async makeRoom(isBusy: (id: string) => boolean): Promise<void> {
    if (this.#used && this.#hasRoom(this.#used, 1)) return void this.#used.count++
    const all = await this.#storage.entries()
    const mayGo = all.filter((entry) => !isBusy(entry.id) && !hasLiveKey(entry))
    if (all.length >= this.#limits.records && mayGo.length === 0) throw tooMany(this.#limits.records)
    const usedSpace = { count: all.length, bytes: await this.#storage.outputBytes(all.map(({ id }) => id)) }
    this.#used = usedSpace
    const part = this.#hasRoom(usedSpace, 1) ? 1 : KEPT_PART
    for (const entry of mayGo) {
      if (this.#hasRoom(usedSpace, part)) break
      usedSpace.bytes -= await this.#storage.outputBytes([entry.id])
      usedSpace.count--
      await this.#storage.remove(entry)
    }
    usedSpace.count++
  }

  #hasRoom({ count, bytes }: { count: number; bytes: number }, part: number): boolean {
    const { records, outputBytes } = this.#limits
    return count < records * part && bytes < outputBytes * part
  }

  /**
   * Returns undefined if the record was removed meanwhile or torn by a power failure: such a command had no key, so no
   * client relies on it.
   */
  async #readEntry(entry: CommandEntry): Promise<CommandRecord | undefined> {
    return CommandRecord.safeParse(await this.#storage.read(entry)).data
  }
}

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex').slice(0, 16)

const hasLiveKey = ({ id, keyHash }: CommandEntry) =>
  keyHash !== undefined && Date.now() - (uuid7Time(id) ?? 0) < KEY_LIFETIME_MS

const tooMany = (limit: number) =>
  new Problem(
    'limit_reached',
    `A conversation keeps at most ${limit} commands, and those of the last day with an Idempotency-Key cannot be removed: leave the key out, or try again later.`,
    { details: { limit, retry_after: 60 } },
  )

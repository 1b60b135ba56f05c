/**
 * The order in which the firehose publishes the events of all conversations: a file of fixed-size records, each a
 * conversation and a seq. A record's number is its position on the firehose, given by its offset in the file.
 *
 * No client learns a position before `sync` has made it durable. A record that a crash has torn, or that never reached the
 * disk, ends the file; it and the rest are cut off when the file is opened. A missing or invalid file is recreated with
 * another `epoch`.
 */
import { randomBytes } from 'node:crypto'
import { constants, open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Origin } from './firehose-heads.ts'
import { readSavedHeads, writeSavedHeads } from './firehose-heads.ts'
import type { FirehoseOrder, LogHead, OrderedEvent } from '../../../events/firehose/firehose-order.ts'
import { syncDirectory, writeAll } from '../../../lib/durable-file.ts'

/** 16 bytes of a UUID, 6 of a seq, 2 of a checksum; the header uses the first 22 differently. */
const RECORD_BYTES = 24
const CHECKED_BYTES = 22
const MAGIC = Buffer.from('firehose')
const EPOCH_BYTES = 8
const FORMAT = 1

/** Bytes per read when the file is opened. */
const BLOCK_BYTES = RECORD_BYTES * 32 * 1024
/** Reading this many records takes some hundredths of a second; saving less is not worthwhile. */
const SAVE_RECORDS = 50_000
const CHECKSUM_RECORDS = 1024
/** Records written at a time: a log that is new to the file may contain a million events. */
const WRITE_RECORDS = 10_000

export class FirehoseFile implements FirehoseOrder {
  readonly epoch: string
  readonly #path: string
  readonly #file: FileHandle
  /** Keyed by the 16 bytes of the id, which take less memory than its text. */
  readonly #heads: Map<string, number>
  #count: number
  #isSynced = true
  /** Number of records whose heads are saved. */
  #savedCount: number

  private constructor(path: string, file: FileHandle, { epoch, heads, count, savedCount }: ReadLines) {
    this.#path = path
    this.#file = file
    this.epoch = epoch
    this.#heads = heads
    this.#count = count
    this.#savedCount = savedCount
  }

  /** Reads the file from the saved heads on, in constant memory except for one number per conversation. */
  static async open(path: string): Promise<FirehoseFile> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    try {
      const epoch = (await readEpoch(file)) ?? (await begin(file, path))
      const savedHeads = await readSavedHeads(headsPathOf(path), originOf(file, epoch))
      const heads = new Map(savedHeads?.heads)
      const count = await readHeads(file, heads, savedHeads?.count ?? 0)
      await file.truncate((count + 1) * RECORD_BYTES)
      await file.datasync()
      return new FirehoseFile(path, file, { epoch, heads, count, savedCount: savedHeads?.count ?? 0 })
    } catch (error) {
      await file.close()
      throw error
    }
  }

  get last(): number {
    return this.#count
  }

  /** The count, for tests. */
  get conversationCount(): number {
    return this.#heads.size
  }

  /**
   * Returns, for tests, the seq of the newest event of this conversation in the order; 0 if the order has no event of
   * it.
   */
  headOf(conversationId: string): number {
    return this.#heads.get(keyOf(conversationId)) ?? 0
  }

  async add(heads: readonly LogHead[]): Promise<void> {
    let waiting: Buffer[] = []
    let count = 0
    for (const { conversationId, head, isExact = false } of heads) {
      const key = keyOf(conversationId)
      const knownHead = this.#heads.get(key) ?? 0
      for (let from = knownHead; from < head; from += WRITE_RECORDS) {
        const records = recordsOf(key, from + 1, Math.min(head, from + WRITE_RECORDS))
        waiting.push(records)
        count += records.length / RECORD_BYTES
        if (count < WRITE_RECORDS) continue
        await this.#write(waiting)
        waiting = []
        count = 0
      }
      if (head > knownHead || isExact) this.#setHead(key, head)
    }
    await this.#write(waiting)
    // The next open reads more without them.
    await this.#saveHeads().catch(() => {})
  }

  async sync(): Promise<void> {
    if (this.#isSynced) return
    await this.#file.datasync()
    this.#isSynced = true
  }

  async read(after: number, limit: number): Promise<OrderedEvent[]> {
    const count = Math.max(0, Math.min(limit, this.#count - after))
    const bytes = Buffer.allocUnsafe(count * RECORD_BYTES)
    await readAll(this.#file, bytes, (after + 1) * RECORD_BYTES)
    return Array.from({ length: count }, (_, i) => {
      const at = i * RECORD_BYTES
      return { position: after + 1 + i, conversationId: uuidAt(bytes, at), seq: bytes.readUIntBE(at + 16, 6) }
    })
  }

  keepOnly(ids: Iterable<string>): Promise<void> {
    const keptKeys = new Set<string>()
    for (const id of ids) keptKeys.add(keyOf(id))
    for (const key of this.#heads.keys()) if (!keptKeys.has(key)) this.#heads.delete(key)
    return Promise.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }

  #setHead(key: string, head: number): void {
    if (head > 0) this.#heads.set(key, head)
    else this.#heads.delete(key)
  }

  async #write(records: readonly Buffer[]): Promise<void> {
    const [first, ...others] = records
    if (!first) return
    const bytes = others.length === 0 ? first : Buffer.concat(records)
    await writeAll(this.#file, bytes, (this.#count + 1) * RECORD_BYTES)
    this.#isSynced = false
    this.#count += bytes.length / RECORD_BYTES
  }

  /** Saves the heads for the next `open`, if there are enough new ones. */
  async #saveHeads(): Promise<void> {
    if (this.#count - this.#savedCount < SAVE_RECORDS) return
    await this.sync()
    const headsToSave = { count: this.#count, heads: new Map(this.#heads) }
    await writeSavedHeads(headsPathOf(this.#path), originOf(this.#file, this.epoch), headsToSave)
    this.#savedCount = headsToSave.count
  }
}

type ReadLines = {
  readonly epoch: string
  readonly heads: Map<string, number>
  readonly count: number
  readonly savedCount: number
}

const headsPathOf = (path: string) => `${path}-heads`

/** The checksum covers only the last records: another history of the same index differs in them. */
function originOf(file: FileHandle, epoch: string): Origin {
  return {
    epoch,
    async checksum(count) {
      const { size } = await file.stat()
      if (size < (count + 1) * RECORD_BYTES) return undefined
      const bytes = Buffer.allocUnsafe(Math.min(count, CHECKSUM_RECORDS) * RECORD_BYTES)
      await readAll(file, bytes, (count + 1) * RECORD_BYTES - bytes.length)
      return crc32(bytes)
    },
  }
}

function recordsOf(key: string, first: number, last: number): Buffer {
  const records = Buffer.allocUnsafe(Math.max(0, last - first + 1) * RECORD_BYTES)
  for (let seq = first, at = 0; seq <= last; seq++, at += RECORD_BYTES) {
    records.write(key, at, 16, 'latin1')
    records.writeUIntBE(seq, at + 16, 6)
    writeCheck(records, at)
  }
  return records
}

function writeCheck(bytes: Buffer, at: number): void {
  bytes.writeUInt16BE(checkOf(bytes, at), at + CHECKED_BYTES)
}

const checkOf = (bytes: Buffer, at: number): number => crc32(bytes.subarray(at, at + CHECKED_BYTES)) & 0xffff

const isWhole = (bytes: Buffer, at: number): boolean =>
  checkOf(bytes, at) === bytes.readUInt16BE(at + CHECKED_BYTES) &&
  // A page that never reached the disk reads as zeros.
  bytes.readUIntBE(at + 16, 6) > 0

/** Reads from the record of this number on. Returns the number of valid records. */
async function readHeads(file: FileHandle, heads: Map<string, number>, from: number): Promise<number> {
  const { size } = await file.stat()
  const all = Math.floor(size / RECORD_BYTES) - 1
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  for (let count = from; count < all;) {
    const bytes = block.subarray(0, Math.min(BLOCK_BYTES, (all - count) * RECORD_BYTES))
    await readAll(file, bytes, (count + 1) * RECORD_BYTES)
    for (let at = 0; at < bytes.length; at += RECORD_BYTES, count++) {
      if (!isWhole(bytes, at)) return count
      heads.set(bytes.toString('latin1', at, at + 16), bytes.readUIntBE(at + 16, 6))
    }
  }
  return Math.max(0, all)
}

async function readEpoch(file: FileHandle): Promise<string | undefined> {
  const header = Buffer.alloc(RECORD_BYTES)
  await file.read(header, 0, RECORD_BYTES, 0)
  if (!header.subarray(0, MAGIC.length).equals(MAGIC) || !isWhole(header, 0)) return undefined
  return header.toString('hex', MAGIC.length, MAGIC.length + EPOCH_BYTES)
}

/** Makes the file and its name durable before any position in it is published. */
async function begin(file: FileHandle, path: string): Promise<string> {
  const epoch = randomBytes(EPOCH_BYTES)
  // It has the format of a record, so that the same check applies.
  const header = Buffer.concat([MAGIC, epoch, Buffer.from([0, 0, 0, 0, 0, FORMAT]), Buffer.alloc(2)])
  writeCheck(header, 0)
  await file.truncate(0)
  await writeAll(file, header, 0)
  await file.datasync()
  await syncDirectory(dirname(path))
  return epoch.toString('hex')
}

async function readAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let doneBytes = 0; doneBytes < bytes.length;) {
    const { bytesRead } = await file.read(bytes, doneBytes, bytes.length - doneBytes, position + doneBytes)
    if (bytesRead === 0) throw new Error('the index of the firehose ends early')
    doneBytes += bytesRead
  }
}

const keyOf = (uuid: string): string => Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('latin1')

function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

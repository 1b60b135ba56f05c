/**
 * The order in which the firehose publishes the events of all conversations: a file of fixed-size records, each a
 * conversation and a seq. A record's number is its position on the firehose, given by its offset in the file.
 *
 * Invariants:
 * - For each conversation the records hold the seqs 1, 2, 3 … up to its `headOf`, each once and in this order; events
 *   of
 *   different conversations are interleaved in the order they were added.
 * - A record and its number never change: every later start reads what `sync` has made durable. No client learns a
 *   position before that, so a position that a client holds means the same event after any crash.
 * - The logs are authoritative. An event that is in its log but not here has not been published; it can be added at any
 *   time, from no more than the head of its log. So nothing waits for this file except the firehose itself.
 *
 * A record that a crash has torn, or that never reached the disk, ends the file; it and the rest are cut off when the
 * file
 * is opened. A missing or invalid file is recreated with another `epoch`.
 */
import { randomBytes } from 'node:crypto'
import { constants, open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Origin } from './firehose-heads.ts'
import { readSavedHeads, writeSavedHeads } from './firehose-heads.ts'
import { syncDirectory, writeAll } from '../../lib/durable-file.ts'

export type IndexRecord = { readonly conversationId: string; readonly seq: number }

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

export class FirehoseIndex {
  /** Distinguishes this file from one that replaced it; 16 hexadecimal digits. */
  readonly epoch: string
  readonly #path: string
  readonly #file: FileHandle
  /** Keyed by the 16 bytes of the id, which take less memory than its text. */
  readonly #heads: Map<string, number>
  #count: number
  #waiting: Buffer[] = []
  /** Number of records in the file, being written, and waiting. */
  #added: number
  #isSynced = true
  /** Number of records whose heads are saved. */
  #savedCount: number

  private constructor(path: string, file: FileHandle, { epoch, heads, count, savedCount }: Read) {
    this.#path = path
    this.#file = file
    this.epoch = epoch
    this.#heads = heads
    this.#count = count
    this.#added = count
    this.#savedCount = savedCount
  }

  /** Reads the file from the saved heads on, in constant memory except for one number per conversation. */
  static async open(path: string): Promise<FirehoseIndex> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    try {
      const epoch = (await readEpoch(file)) ?? (await begin(file, path))
      const saved = await readSavedHeads(headsPathOf(path), originOf(file, epoch))
      const heads = new Map(saved?.heads)
      const count = await readHeads(file, heads, saved?.count ?? 0)
      await file.truncate((count + 1) * RECORD_BYTES)
      await file.datasync()
      return new FirehoseIndex(path, file, { epoch, heads, count, savedCount: saved?.count ?? 0 })
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Number of records in the file. */
  get count(): number {
    return this.#count
  }

  /** Number of records in the file and not in the file yet. */
  get added(): number {
    return this.#added
  }

  /** Number of records that are not in the file yet. */
  get waitingCount(): number {
    return this.#added - this.#count
  }

  /** Number of conversations whose head is in memory. */
  get conversationCount(): number {
    return this.#heads.size
  }

  /** Returns the last added seq of this conversation; 0 if there is none. */
  headOf(conversationId: string): number {
    return this.#heads.get(keyOf(conversationId)) ?? 0
  }

  /**
   * Adds all seqs of this conversation up to this one; returns the number of its record. Nothing is written before
   * `write`.
   */
  add(conversationId: string, upTo: number): number {
    const key = keyOf(conversationId)
    const head = this.#heads.get(key) ?? 0
    const records = recordsOf(key, head + 1, upTo)
    this.#heads.set(key, upTo)
    this.#waiting.push(records)
    this.#added += records.length / RECORD_BYTES
    return this.#added
  }

  /**
   * Lowers the head of a log that has become shorter, such as one restored from a backup: its next events are
   * published.
   */
  shorten(conversationId: string, head: number): void {
    this.#heads.set(keyOf(conversationId), head)
  }

  /** Forgets the head of a deleted conversation: nothing may be added to it any more. Its records stay. */
  forget(conversationId: string): void {
    this.#heads.delete(keyOf(conversationId))
  }

  /** Forgets the heads of all conversations that neither exist nor are being created or deleted. */
  keepOnly(existing: Iterable<readonly [id: string, ...unknown[]]>, open: Iterable<{ conversationId: string }>): void {
    const kept = new Set<string>()
    for (const [id] of existing) kept.add(keyOf(id))
    for (const { conversationId } of open) kept.add(keyOf(conversationId))
    for (const key of this.#heads.keys()) if (!kept.has(key)) this.#heads.delete(key)
  }

  /**
   * Writes everything added so far in one write. Never call it during another `write` or `sync`; if either throws,
   * reopen the file.
   */
  async write(): Promise<void> {
    const [first, ...others] = this.#waiting
    if (!first) return
    const bytes = others.length === 0 ? first : Buffer.concat(this.#waiting)
    this.#waiting = []
    await writeAll(this.#file, bytes, (this.#count + 1) * RECORD_BYTES)
    this.#isSynced = false
    this.#count += bytes.length / RECORD_BYTES
  }

  /** Makes written records durable. */
  async sync(): Promise<void> {
    if (this.#isSynced) return
    await this.#file.datasync()
    this.#isSynced = true
  }

  /** Returns the records from this number on, at most `limit`. */
  async read(from: number, limit: number): Promise<IndexRecord[]> {
    const count = Math.max(0, Math.min(limit, this.#count - from + 1))
    const bytes = Buffer.allocUnsafe(count * RECORD_BYTES)
    await readAll(this.#file, bytes, from * RECORD_BYTES)
    return Array.from({ length: count }, (_, i) => {
      const at = i * RECORD_BYTES
      return { conversationId: uuidAt(bytes, at), seq: bytes.readUIntBE(at + 16, 6) }
    })
  }

  /** Saves the heads for the next `open`, if there are enough new ones. Never call it during `write` or `sync`. */
  async saveHeads(): Promise<void> {
    if (this.#count - this.#savedCount < SAVE_RECORDS) return
    await this.sync()
    // Exclude waiting records: after a crash they would be missing from the file.
    if (this.waitingCount > 0) return
    const saved = { count: this.#count, heads: new Map(this.#heads) }
    await writeSavedHeads(headsPathOf(this.#path), originOf(this.#file, this.epoch), saved)
    this.#savedCount = saved.count
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}

type Read = {
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
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done)
    if (bytesRead === 0) throw new Error('the index of the firehose ends early')
    done += bytesRead
  }
}

const keyOf = (uuid: string): string => Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('latin1')

function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/**
 * The order in which the firehose tells the events of all conversations: a file of records of one size, each a
 * conversation and a seq. The number of a record is its position on the firehose; where it stands in the file says it.
 *
 * What holds, and what the file relies on:
 * - For each conversation the records hold the seqs 1, 2, 3 … up to its `headOf`, each once and in this order; how those
 *   of different conversations are mixed is the order they were added in.
 * - A record never changes, nor its number: what `sync` has made durable is what any later start reads. Nobody is told a
 *   position before that, so a position that a client holds means the same event after any crash.
 * - The logs are the truth. An event that is in its log and not in here was told to nobody; it can be added at any
 *   time, from no more than the head of its log. So nothing waits for this file but the firehose itself.
 *
 * A record that a crash has torn, or that never reached the disk, ends the file; it and what follows is cut when the file
 * is opened. A file that is not there, or does not begin as one, is begun anew under another `epoch`.
 */
import { randomBytes } from 'node:crypto'
import { constants, open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Origin } from './firehose-heads.ts'
import { readSavedHeads, writeSavedHeads } from './firehose-heads.ts'
import { syncDirectory } from '../../lib/durable-file.ts'

export type IndexRecord = { readonly conversationId: string; readonly seq: number }

/** 16 bytes of a UUID, 6 of a seq, 2 of a check; the header has its own use of the first 22. */
const RECORD_BYTES = 24
const CHECKED_BYTES = 22
const MAGIC = Buffer.from('firehose')
const EPOCH_BYTES = 8
const FORMAT = 1

/** Read at a time when the file is opened. */
const BLOCK_BYTES = RECORD_BYTES * 32 * 1024
/** Reading so many records takes some hundredths of a second; it is not worth saving less. */
const SAVE_RECORDS = 50_000
const CHECKSUM_RECORDS = 1024

export class FirehoseIndex {
  /** Tells this file from another that was begun in its place; 16 hexadecimal digits. */
  readonly epoch: string
  readonly #path: string
  readonly #file: FileHandle
  /** By the 16 bytes of the id, which take less than its text. */
  readonly #heads: Map<string, number>
  #count: number
  #waiting: Buffer[] = []
  /** Those in the file, those on their way there, and those that wait. */
  #added: number
  #isSynced = true
  /** Records whose heads are saved. */
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

  /** Reads the file from where its heads were saved, in constant memory but for one number a conversation. */
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

  /** Records in the file. */
  get count(): number {
    return this.#count
  }

  /** Records that are not in the file yet. */
  get waitingCount(): number {
    return this.#added - this.#count
  }

  /** The last seq of this conversation that was added; 0 when there is none. */
  headOf(conversationId: string): number {
    return this.#heads.get(keyOf(conversationId)) ?? 0
  }

  /** All seqs of this conversation up to this one; answers the number of its record. Nothing is written before `write`. */
  add(conversationId: string, upTo: number): number {
    const key = keyOf(conversationId)
    const head = this.#heads.get(key) ?? 0
    const records = recordsOf(key, head + 1, upTo)
    this.#heads.set(key, upTo)
    this.#waiting.push(records)
    this.#added += records.length / RECORD_BYTES
    return this.#added
  }

  /** Forgets what was told of a log that has got shorter, as one restored from a backup has: its next events are told. */
  shorten(conversationId: string, head: number): void {
    this.#heads.set(keyOf(conversationId), head)
  }

  /**
   * All that was added so far, in one write. Never while it, or `sync`, is under way; when either throws, the file has to be
   * opened anew.
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

  /** What was written is durable when it resolves. */
  async sync(): Promise<void> {
    if (this.#isSynced) return
    await this.#file.datasync()
    this.#isSynced = true
  }

  /** The records from this number on, as many as there are and no more than `limit`. */
  async read(from: number, limit: number): Promise<IndexRecord[]> {
    const count = Math.max(0, Math.min(limit, this.#count - from + 1))
    const bytes = Buffer.allocUnsafe(count * RECORD_BYTES)
    await readAll(this.#file, bytes, from * RECORD_BYTES)
    return Array.from({ length: count }, (_, i) => {
      const at = i * RECORD_BYTES
      return { conversationId: uuidAt(bytes, at), seq: bytes.readUIntBE(at + 16, 6) }
    })
  }

  /** For the next who opens it, if there is enough to save. Never while `write` or `sync` is under way. */
  async saveHeads(): Promise<void> {
    if (this.#count - this.#savedCount < SAVE_RECORDS) return
    await this.sync()
    // Those of records that wait would be missing from the file after a crash.
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

/** The checksum is of the last records only: those of another history of the same index differ in them. */
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

/** From the record of this number on. Answers how many records there are up to the first that is none. */
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

/** Durable, with its name, before any position in it is told. */
async function begin(file: FileHandle, path: string): Promise<string> {
  const epoch = randomBytes(EPOCH_BYTES)
  // Made as a record is, so that the same check holds for it.
  const header = Buffer.concat([MAGIC, epoch, Buffer.from([0, 0, 0, 0, 0, FORMAT]), Buffer.alloc(2)])
  writeCheck(header, 0)
  await file.truncate(0)
  await writeAll(file, header, 0)
  await file.datasync()
  await syncDirectory(dirname(path))
  return epoch.toString('hex')
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
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

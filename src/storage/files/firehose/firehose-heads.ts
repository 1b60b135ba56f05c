/**
 * Saves the last seq of each conversation in the firehose's index, as of some number of its records, in a separate
 * file: opening the index then reads only the later records. A cache: if it does not fit the index, all records are
 * read.
 */
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { replaceFile } from '../../../lib/durable-file.ts'

export type SavedHeads = {
  /** Number of index records that it covers. */
  readonly count: number
  /** Keyed by the 16 bytes of the id, as text with one character per byte. */
  readonly heads: ReadonlyMap<string, number>
}

/** Identifies the covered records: the epoch of the index, in hexadecimal, and a checksum of the last records. */
export type Origin = { readonly epoch: string; readonly checksum: (count: number) => Promise<number | undefined> }

const MAGIC = Buffer.from('fh-heads')
/** 8 bytes each of the magic and the epoch, 6 of the count, 4 of the checksum. */
const HEADER_BYTES = 26
/** 16 of an id, 6 of a seq. */
const ENTRY_BYTES = 22
const CHECK_BYTES = 4

/** Returns undefined if there are none for these records. */
export async function readSavedHeads(path: string, origin: Origin): Promise<SavedHeads | undefined> {
  const bytes = await readFile(path).catch(() => undefined)
  if (!bytes || bytes.length < HEADER_BYTES + CHECK_BYTES || !bytes.subarray(0, 8).equals(MAGIC)) return undefined
  const end = bytes.length - CHECK_BYTES
  if (bytes.readUInt32BE(end) !== crc32(bytes.subarray(0, end))) return undefined
  const count = bytes.readUIntBE(16, 6)
  if (bytes.toString('hex', 8, 16) !== origin.epoch) return undefined
  if (bytes.readUInt32BE(22) !== (await origin.checksum(count))) return undefined
  const heads = new Map<string, number>()
  for (let at = HEADER_BYTES; at < end; at += ENTRY_BYTES)
    heads.set(bytes.toString('latin1', at, at + 16), bytes.readUIntBE(at + 16, 6))
  return { count, heads }
}

/** The records must be durable. The file is not synced: a torn one fails its checksum. */
export async function writeSavedHeads(path: string, origin: Origin, { count, heads }: SavedHeads): Promise<void> {
  const checksum = await origin.checksum(count)
  if (checksum === undefined) return
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + heads.size * ENTRY_BYTES + CHECK_BYTES)
  MAGIC.copy(bytes)
  bytes.write(origin.epoch, 8, 'hex')
  bytes.writeUIntBE(count, 16, 6)
  bytes.writeUInt32BE(checksum, 22)
  let at = HEADER_BYTES
  for (const [key, head] of heads) {
    bytes.write(key, at, 'latin1')
    bytes.writeUIntBE(head, at + 16, 6)
    at += ENTRY_BYTES
  }
  bytes.writeUInt32BE(crc32(bytes.subarray(0, at)), at)
  await replaceFile(path, bytes, { durable: false, draft: `${path}.new` })
}

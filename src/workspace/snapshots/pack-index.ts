/** The index of a pack of git, as gitformat-pack(5) describes its second version: written for new packs, and read to know what is stored. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Slices } from '../../lib/time-slices.ts'

export type PackedObject = {
  /** SHA-1, as hexadecimal digits. */
  readonly name: string
  /** The position of its first byte in the pack. */
  readonly offset: number
  /** CRC-32 of its bytes in the pack. */
  readonly crc: number
}

export const packsOf = ({ directory }: { readonly directory: string }): string => join(directory, 'objects', 'pack')

const NAME_BYTES = 20
/** How many names begin with this byte or a lower one, for each byte. */
const FANOUT_BYTES = 256 * 4
const MAGIC = Buffer.from('ff744f6300000002', 'hex')
const HEADER_BYTES = MAGIC.length + FANOUT_BYTES
/** Offsets from here on are in a separate table. */
const LARGE = 2 ** 31

/** `packName`: the SHA-1 at the end of the pack. Each object is there once. */
export async function writePackIndex(
  objects: readonly PackedObject[],
  packName: Buffer,
  slices: Slices,
): Promise<Buffer> {
  const buckets = Array.from({ length: 256 }, (): PackedObject[] => [])
  for (const object of objects) buckets[parseInt(object.name.slice(0, 2), 16)]?.push(object)
  const sortedObjects: PackedObject[] = []
  const fanout = Buffer.alloc(FANOUT_BYTES)
  for (const [byte, bucket] of buckets.entries()) {
    await slices.rest()
    for (const object of bucket.sort((a, b) => (a.name < b.name ? -1 : 1))) sortedObjects.push(object)
    fanout.writeUInt32BE(sortedObjects.length, byte * 4)
  }
  const names = Buffer.from(sortedObjects.map(({ name }) => name).join(''), 'hex')
  await slices.rest()
  const crcs = Buffer.alloc(sortedObjects.length * 4)
  const offsets = Buffer.alloc(sortedObjects.length * 4)
  const large: Buffer[] = []
  for (const [index, { crc, offset }] of sortedObjects.entries()) {
    crcs.writeUInt32BE(crc, index * 4)
    if (offset < LARGE) offsets.writeUInt32BE(offset, index * 4)
    else {
      offsets.writeUInt32BE(LARGE + large.length, index * 4)
      const wide = Buffer.alloc(8)
      wide.writeBigUInt64BE(BigInt(offset))
      large.push(wide)
    }
  }
  const content = Buffer.concat([MAGIC, fanout, names, crcs, offsets, ...large, packName])
  return Buffer.concat([content, createHash('sha1').update(content).digest()])
}

/** The names of all objects in the packs of a store. */
export class StoredNames {
  /** The headers and the names of the indexes, by file. */
  #packs: ReadonlyMap<string, Buffer> = new Map()

  /** Reads the indexes that are new. One that is damaged, or without its pack, counts for nothing. */
  async refresh(packDirectory: string): Promise<void> {
    const files = new Set(await readdir(packDirectory))
    const packs = new Map<string, Buffer>()
    for (const file of files) {
      if (!file.endsWith('.idx') || !files.has(file.replace(/idx$/, 'pack'))) continue
      const names = this.#packs.get(file) ?? (await readNames(join(packDirectory, file)))
      if (names) packs.set(file, names)
    }
    this.#packs = packs
  }

  has(name: string): boolean {
    if (this.#packs.size === 0) return false
    const wantedName = Buffer.from(name, 'hex')
    return this.#packs.values().some((pack) => hasName(pack, wantedName))
  }
}

/** Undefined if it is not the index of a pack. */
async function readNames(path: string): Promise<Buffer | undefined> {
  const content = await readFile(path)
  if (content.length < HEADER_BYTES || !content.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const end = HEADER_BYTES + content.readUInt32BE(HEADER_BYTES - 4) * NAME_BYTES
  // A copy: a part would keep all of it in memory.
  return content.length < end ? undefined : Buffer.from(content.subarray(0, end))
}

function hasName(pack: Buffer, wantedName: Buffer): boolean {
  const first = wantedName[0] ?? 0
  let low = first === 0 ? 0 : pack.readUInt32BE(MAGIC.length + (first - 1) * 4)
  let high = pack.readUInt32BE(MAGIC.length + first * 4)
  while (low < high) {
    const middle = (low + high) >>> 1
    const at = HEADER_BYTES + middle * NAME_BYTES
    const order = pack.compare(wantedName, 0, NAME_BYTES, at, at + NAME_BYTES)
    if (order === 0) return true
    if (order < 0) low = middle + 1
    else high = middle
  }
  return false
}

/** Makes indexes of repositories, as gitformat-index(5) describes them. */

export type Entry = {
  readonly name: string | Buffer
  readonly isSubmodule?: boolean
  readonly isExtended?: boolean
  /** In version 4: how many characters of the name before it are left out. */
  readonly removed?: number
}

export function makeIndex(version: number, entries: readonly Entry[], extensions: readonly string[] = []): Buffer {
  const head = Buffer.alloc(12)
  head.write('DIRC', 'latin1')
  head.writeUInt32BE(version, 4)
  head.writeUInt32BE(entries.length, 8)
  const parts = extensions.map((name) =>
    Buffer.concat([Buffer.from(name), Buffer.from([0, 0, 0, 3]), Buffer.from('abc')]),
  )
  return Buffer.concat([head, ...entries.map((entry) => entryOf(version, entry)), ...parts, Buffer.alloc(20)])
}

function entryOf(version: number, { name, isSubmodule = false, isExtended = false, removed = 0 }: Entry): Buffer {
  const bytes = Buffer.from(name)
  const fixed = Buffer.alloc(isExtended ? 64 : 62, 1)
  fixed.writeUInt32BE(isSubmodule ? 0o160000 : 0o100644, 24)
  fixed.writeUInt16BE(Math.min(bytes.length, 0xfff) | (isExtended ? 0x4000 : 0), 60)
  if (version === 4) return Buffer.concat([fixed, numberOf(removed), bytes, Buffer.alloc(1)])
  const length = fixed.length + bytes.length
  return Buffer.concat([fixed, bytes, Buffer.alloc(8 - (length % 8))])
}

/** As in packs: seven bits in a byte, the highest ones first, and each further byte counts one more. */
function numberOf(value: number): Buffer {
  const bytes = [value & 0x7f]
  for (let left = (value >> 7) - 1; left >= 0; left = (left >> 7) - 1) bytes.unshift((left & 0x7f) | 0x80)
  return Buffer.from(bytes)
}

/** Reads the index of a repository (the format is in gitformat-index(5) of git) for the paths of its submodules. */

const HEADER_BYTES = 12
const MODE_AT = 24
const FLAGS_EXTENDED = 0x4000
const MAX_NAME = 0xfff
const SUBMODULE = 0o160000
const SHA1_BYTES = 20

/** Undefined if it cannot be read with certainty. */
export function submodulesIn(bytes: Buffer): readonly string[] | undefined {
  try {
    return readEntries(bytes)
  } catch {
    // A read after the end.
    return undefined
  }
}

function readEntries(bytes: Buffer): readonly string[] | undefined {
  const version = bytes.readUInt32BE(4)
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) return undefined
  const paths: string[] = []
  let at = HEADER_BYTES
  let previous: Buffer = Buffer.alloc(0)
  for (let remainingEntries = bytes.readUInt32BE(8); remainingEntries > 0; remainingEntries -= 1) {
    const flagsAt = at + 40 + SHA1_BYTES
    const flags = bytes.readUInt16BE(flagsAt)
    const nameAt = flagsAt + 2 + (version > 2 && flags & FLAGS_EXTENDED ? 2 : 0)
    const { name, end } = version === 4 ? shortName(bytes, nameAt, previous) : wholeName(bytes, nameAt, flags)
    if (bytes[end] !== 0 || name.length === 0) return undefined
    if (bytes.readUInt32BE(at + MODE_AT) === SUBMODULE) paths.push(name.toString('utf8'))
    previous = name
    // Entries are filled up to eight bytes.
    at = version === 4 ? end + 1 : at + (Math.floor((end - at) / 8) + 1) * 8
  }
  const isShared = hasSharedIndex(bytes, at)
  return isShared === false && !paths.some((path) => path.includes('\ufffd')) ? paths : undefined
}

type Name = { readonly name: Buffer; readonly end: number }

function wholeName(bytes: Buffer, at: number, flags: number): Name {
  const length = flags & MAX_NAME
  const end = length < MAX_NAME ? at + length : bytes.indexOf(0, at)
  return { name: bytes.subarray(at, end), end }
}

/** Version 4 stores how many bytes to remove from the previous name, and the text to append. */
function shortName(bytes: Buffer, start: number, previous: Buffer): Name {
  let at = start
  let byte = bytes.readUInt8(at)
  let removedBytes = byte & 0x7f
  while (byte & 0x80) {
    at += 1
    byte = bytes.readUInt8(at)
    removedBytes = (removedBytes + 1) * 128 + (byte & 0x7f)
  }
  const end = bytes.indexOf(0, at + 1)
  const keptBytes = previous.subarray(0, previous.length - removedBytes)
  return { name: Buffer.concat([keptBytes, bytes.subarray(at + 1, end)]), end }
}

/** The entries of a split index are in another file. Undefined if it does not end as an index does. */
function hasSharedIndex(bytes: Buffer, start: number): boolean | undefined {
  let at = start
  while (at < bytes.length - SHA1_BYTES) {
    if (bytes.toString('latin1', at, at + 4) === 'link') return true
    at += 8 + bytes.readUInt32BE(at + 4)
  }
  return at === bytes.length - SHA1_BYTES ? false : undefined
}

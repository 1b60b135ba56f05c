/**
 * The tar format: the blocks before and after an entry's content, in POSIX.1-2001 (pax) if the old format has no room.
 * Own code, because `tar-stream` treats names as UTF-8 text: here they are bytes, and another encoding is preserved.
 */

export type TarEntry = {
  /** Relative; a directory has no trailing slash. Bytes, as names are. */
  readonly path: Buffer
  readonly kind: 'file' | 'directory' | 'symlink'
  readonly size: number
  readonly mode: number
  /** Unix time in seconds. */
  readonly mtime: number
  /** Target of a symbolic link. */
  readonly target?: Buffer
}

const BLOCK_BYTES = 512
const NAME_BYTES = 100
/** Eleven octal digits. */
const MAX_OCTAL_SIZE = 0o77777777777

const TYPES: Readonly<Record<TarEntry['kind'], string>> = { file: '0', symlink: '2', directory: '5' }

/** The end of an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES)

/** Returns the blocks before the entry's content. */
export function tarHeader(entry: TarEntry): Buffer {
  const path = entry.kind === 'directory' ? Buffer.concat([entry.path, Buffer.from('/')]) : entry.path
  const { target = Buffer.alloc(0), size } = entry
  const records = [
    ...(path.length > NAME_BYTES ? [paxRecord('path', path)] : []),
    ...(target.length > NAME_BYTES ? [paxRecord('linkpath', target)] : []),
    ...(size > MAX_OCTAL_SIZE ? [paxRecord('size', Buffer.from(String(size)))] : []),
  ]
  const header = block({ ...entry, path, target, type: TYPES[entry.kind] })
  if (records.length === 0) return header
  const pax = Buffer.concat(records)
  const before = block({
    ...entry,
    path: Buffer.from('././@PaxHeader'),
    target: Buffer.alloc(0),
    size: pax.length,
    type: 'x',
  })
  return Buffer.concat([before, pax, tarPadding(pax.length), header])
}

/** Returns the padding after this much content. */
export const tarPadding = (size: number): Buffer => Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)

type Fields = Omit<TarEntry, 'kind'> & { readonly type: string; readonly target: Buffer }

function block({ path, target, size, mode, mtime, type }: Fields): Buffer {
  const bytes = Buffer.alloc(BLOCK_BYTES)
  path.copy(bytes, 0, 0, NAME_BYTES)
  bytes.write(octal(mode & 0o7777, 7), 100)
  // Owners have no meaning on another machine: the user who extracts the files owns them.
  bytes.write(octal(0, 7), 108)
  bytes.write(octal(0, 7), 116)
  bytes.write(octal(Math.min(size, MAX_OCTAL_SIZE), 11), 124)
  bytes.write(octal(Math.max(0, mtime), 11), 136)
  bytes.write(' '.repeat(8), 148)
  bytes.write(type, 156)
  target.copy(bytes, 157, 0, NAME_BYTES)
  bytes.write('ustar\x0000', 257)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${octal(sum, 6)}\0 `, 148)
  return bytes
}

const octal = (value: number, digits: number) => Math.floor(value).toString(8).padStart(digits, '0').slice(-digits)

/** `length key=value\n`; the length includes itself. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')])
  let length = rest.length
  while (length !== rest.length + String(length).length) length = rest.length + String(length).length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

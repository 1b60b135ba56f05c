/**
 * Copies the content of one open file: shares its blocks if the file system can, otherwise reads its bytes, up to a
 * size that was counted before. Skips zeros, so that a hole in the file stays one. The file may change meanwhile.
 */
import { constants } from 'node:fs'
import { copyFile, open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { codeOf } from '../../lib/error-code.ts'
import { writeAll } from '../../lib/durable-file.ts'

export type FileCopy = {
  readonly source: FileHandle
  /** Maximum number of bytes to read. */
  readonly size: number
  /** Must not exist yet. */
  readonly target: string
  /** Called before each piece; throws to end the copy. */
  readonly check: () => void
}

/** Bytes per read. */
const CHUNK_BYTES = 1024 * 1024
/** File systems store holes in units of their blocks; this is the usual size. */
const BLOCK_BYTES = 4096
const ZEROS = Buffer.alloc(CHUNK_BYTES)

/** The errors of file systems that cannot share blocks, or not between these two places. */
const CANNOT_SHARE: ReadonlySet<string> = new Set(['ENOTSUP', 'EOPNOTSUPP', 'ENOTTY', 'EXDEV', 'EINVAL', 'ENOSYS'])

/** Copies files of one tree: detects once whether blocks can be shared. */
export function createFileCopier(): (copy: FileCopy) => Promise<void> {
  let canShare = true
  return async (copy) => {
    if (canShare) canShare = await shareBlocks(copy)
    if (!canShare) await copyBytes(copy)
  }
}

/** Returns true if it succeeded; otherwise nothing is at the target. */
async function shareBlocks({ source, target }: FileCopy): Promise<boolean> {
  try {
    const flags = constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL
    await copyFile(`/proc/self/fd/${source.fd}`, target, flags)
    return true
  } catch (error) {
    if (!CANNOT_SHARE.has(codeOf(error) ?? '')) throw error
    return false
  }
}

async function copyBytes({ source, size, target, check }: FileCopy): Promise<void> {
  await using copy = await open(target, 'wx', 0o600)
  const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, size))
  let [at, end] = [0, 0]
  while (at < size) {
    check()
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, size - at), at)
    if (bytesRead === 0) break
    for (const { from, to } of dataIn(buffer.subarray(0, bytesRead))) {
      await writeAll(copy, buffer.subarray(from, to), at + from)
      end = at + to
    }
    at += bytesRead
  }
  if (end < at) await copy.truncate(at)
}

type Run = { readonly from: number; readonly to: number }

/** Yields the parts that are not zero, in whole blocks. */
function* dataIn(bytes: Buffer): Generator<Run> {
  if (isZero(bytes)) return
  let from: number | undefined
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    // The first byte distinguishes most blocks from a hole, without checking the rest.
    const isHole = bytes[at] === 0 && isZero(bytes.subarray(at, at + BLOCK_BYTES))
    if (isHole && from !== undefined) yield { from, to: at }
    from = isHole ? undefined : (from ?? at)
  }
  if (from !== undefined) yield { from, to: bytes.length }
}

const isZero = (bytes: Buffer): boolean => bytes.equals(ZEROS.subarray(0, bytes.length))

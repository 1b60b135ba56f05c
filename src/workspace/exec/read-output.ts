/** Reads the output of a command from any byte, during or after the run. */
import { open } from 'node:fs/promises'
import { completeUtf8Length } from '../../lib/text/utf8-border.ts'
import { codeOf } from '../../lib/error-code.ts'

export type OutputPiece = { readonly text: string; readonly nextOffset: number; readonly isEnd: boolean }

/**
 * Reads a file that will not grow any more if `isWhole`. Otherwise an incomplete character at the end is left for the
 * next piece.
 */
export async function readOutputPiece(
  path: string,
  { offset, limit, isWhole }: { offset: number; limit: number; isWhole: boolean },
): Promise<OutputPiece> {
  const { bytes, size } = await readBytes(path, offset, limit)
  const reachesEnd = offset + bytes.length >= size
  const length = reachesEnd && isWhole ? bytes.length : completeUtf8Length(bytes)
  const nextOffset = offset + length
  return { text: bytes.subarray(0, length).toString(), nextOffset, isEnd: isWhole && nextOffset >= size }
}

/** A command that has written nothing has no file. */
async function readBytes(path: string, offset: number, limit: number): Promise<{ bytes: Buffer; size: number }> {
  try {
    await using file = await open(path, 'r')
    const { size } = await file.stat()
    const buffer = Buffer.alloc(Math.max(0, Math.min(limit, size - offset)))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
    return { bytes: buffer.subarray(0, bytesRead), size }
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    return { bytes: Buffer.alloc(0), size: 0 }
  }
}

/** Reads stdin as text, whole or line by line, up to a bound. Ends with the signal, also while nothing arrives. */
import type { Readable } from 'node:stream'
import { addAbortSignal } from 'node:stream'
import { codeOf } from '../../lib/error-code.ts'
import { UsageError } from '../command-line/usage-error.ts'

/** The size of a prompt. No server accepts a request of this size. */
const MAX_BYTES = 64 * 1024 * 1024

/** Throws a `UsageError` if it is too large, or not text. */
export async function readText(stdin: Readable, signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of piecesOf(stdin, signal)) {
    length += piece.length
    if (length > MAX_BYTES) throw new UsageError(`stdin is larger than ${MAX_BYTES / 1024 / 1024} MiB.`)
    pieces.push(piece)
  }
  return textOf(Buffer.concat(pieces))
}

/** Yields each line without its end. Reads no further while a line is used. */
export async function* readLines(stdin: Readable, signal: AbortSignal): AsyncGenerator<string> {
  let firstChunks: Buffer[] = []
  let length = 0
  for await (const piece of piecesOf(stdin, signal)) {
    let start = 0
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      yield textOf(Buffer.concat([...firstChunks, piece.subarray(start, end)]))
      firstChunks = []
      length = 0
      start = end + 1
    }
    firstChunks.push(piece.subarray(start))
    length += piece.length - start
    if (length > MAX_BYTES) throw new UsageError(`a line of stdin is larger than ${MAX_BYTES / 1024 / 1024} MiB.`)
  }
  yield textOf(Buffer.concat(firstChunks))
}

const NEWLINE = 0x0a

async function* piecesOf(stdin: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  // The signal can destroy it while nothing reads.
  stdin.on('error', () => {})
  try {
    for await (const piece of addAbortSignal(signal, stdin) as AsyncIterable<Buffer>) yield piece // no encoding is set
  } catch (cause) {
    signal.throwIfAborted()
    throw new UsageError(`stdin cannot be read (${codeOf(cause) ?? 'error'}).`, { cause })
  }
}

/** Leaves out a byte order mark, which editors and shells of Windows write. */
function textOf(bytes: Buffer): string {
  if (bytes.includes(0))
    throw new UsageError('stdin contains binary data; give text in UTF-8, or the path of the file.')
  return new TextDecoder().decode(bytes)
}

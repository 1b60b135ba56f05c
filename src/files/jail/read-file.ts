/** Reads a file of the workdir, completely or in part, in bounded memory. */
import type { BigIntStats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { JailPath } from './jail-path.ts'
import type { Jail } from './path-jail.ts'
import { fileNotFound, look, openDirectoryIn, openToRead } from './path-jail.ts'

/** Bytes per read. */
const CHUNK_BYTES = 256 * 1024

/** Open until it is disposed, or its content has been read. Deleting or replacing the file does not affect it. */
export type OpenedFile = AsyncDisposable & {
  readonly stats: BigIntStats
  /** `end` is exclusive. Fails if the file has become shorter; closes the file at the end. */
  readonly content: (start: number, end: number) => Readable
}

export async function openFile(jail: Jail, path: JailPath): Promise<OpenedFile> {
  await using parent = await openDirectoryIn(jail, path.names.slice(0, -1))
  await using entry = await look(jail, parent, path.names.at(-1) ?? '.')
  if (!entry) throw fileNotFound()
  const file = await openToRead(jail, entry)
  const stats = await jail
    .io(() => file.stat({ bigint: true }))
    .catch(async (error: unknown) => {
      await file.close()
      throw error
    })
  return {
    stats,
    content(start, end) {
      const pieces = wholeRange(jail, file, start, end)
      const stream = Readable.from(pieces, { objectMode: false, highWaterMark: CHUNK_BYTES })
      // This works also if reading has never begun.
      return stream.once('close', () => void file.close())
    },
    [Symbol.asyncDispose]: () => file.close(),
  }
}

/** Yields exactly the promised bytes; a premature end must be an error, so that it cannot look complete. */
async function* wholeRange(jail: Jail, file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  let at = start
  for await (const piece of readRange(jail, file, start, end)) {
    at += piece.length
    yield piece
  }
  if (at < end) throw new Error('the file became shorter during the read')
}

/** Yields pieces of the file, up to its own end if that comes before `end`. */
export async function* readRange(
  { io }: Pick<Jail, 'io'>,
  file: FileHandle,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  for (let at = start; at < end;) {
    const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - at))
    const { bytesRead } = await io(() => file.read(buffer, 0, buffer.length, at))
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

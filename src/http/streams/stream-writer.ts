/**
 * Writes the pieces of a streamed response to the socket: each as one write of bytes that all readers share. Own code,
 * because Node's `write` frames each piece again for every reader; with 50 readers that is a third of all the work.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { withinTime } from '../../lib/bounded-wait.ts'

export type StreamWriter = {
  /** Returns true if there is room for more; otherwise await `drained` first. */
  readonly write: (piece: Buffer | string) => boolean
  /** Resolves, too, when the signal aborts, and when a reader that reads nothing was disconnected. */
  readonly drained: (signal: AbortSignal) => Promise<void>
}

/** A reader that reads nothing for this long is disconnected, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000

/**
 * Call it after the head is written. Node's `write` also needs three parts and a turn of the event loop for each piece.
 * Pieces that come together leave together, at the end of their turn of the event loop: each write to a socket is a call of the
 * kernel, which takes longer than all else that a short piece needs. One that comes alone, as the one before, leaves at once.
 */
export function createStreamWriter(response: ServerResponse): StreamWriter {
  // Pieces must not overtake the head.
  response.flushHeaders()
  const { socket } = response
  // HTTP/1.0 has no chunks, and a pipelined response has no socket yet.
  const isDirect = socket !== null && response.chunkedEncoding
  const target = isDirect ? socket : response
  let pieces = 0
  let areMany = false
  const endTurn = () => {
    if (areMany) target.uncork()
    areMany = pieces > 1
    pieces = 0
  }
  return {
    write(piece) {
      pieces++
      if (pieces === 1) setImmediate(endTurn)
      if (pieces === (areMany ? 1 : 2)) {
        areMany = true
        target.cork()
      }
      return target.write(isDirect ? chunkOf(piece) : piece)
    },
    async drained(signal) {
      try {
        await withinTime(STALL_TIMEOUT_MS, signal, (inTime) => once(target, 'drain', { signal: inTime }))
      } catch {
        // It has read nothing for so long that it will not read a last frame either.
        response.destroy()
      }
    },
  }
}

/** A chunk lives no longer than the bytes it was made from. */
const chunks = new WeakMap<Buffer, Buffer>()

const CRLF = Buffer.from('\r\n')

/** RFC 9112, section 7.1: the length in hexadecimal, the bytes. */
function chunkOf(piece: Buffer | string): Buffer {
  const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
  let chunk = chunks.get(bytes)
  if (!chunk) {
    chunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF])
    chunks.set(bytes, chunk)
  }
  return chunk
}

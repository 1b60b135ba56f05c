/** The key of clients that cannot set headers, as browsers cannot: in the first frame, soon, and with little before it. */
import type { FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { AUTH_TIMEOUT_MS, AuthFrame, MAX_AUTH_BYTES } from '../../contract/socket.ts'
import { Problem } from '../../contract/problem.ts'

/** Of all clients together: each holds a connection and what it has sent so far. */
const MAX_UNKNOWN = 200

/** RFC 6455: a message is too big to be processed. */
const TOO_BIG = 1009

export type FirstFrameKey = {
  /** Throws a `Problem` when too many wait already; to be asked before the upgrade. */
  readonly requireRoom: () => void
  /**
   * Resolves when the first of `frames` held a key. Throws a `Problem` when it held none, or came too late; false when the
   * connection is gone, or was ended for what it sent.
   */
  readonly admit: (request: FastifyRequest, ws: WebSocket, frames: AsyncIterator<string, void>) => Promise<boolean>
}

/** As for an `Authorization` header. Throws a `Problem`. */
export type CheckKey = (request: FastifyRequest, authorization: string | undefined) => Promise<void>

export function createFirstFrameKey(checkKey: CheckKey): FirstFrameKey {
  let unknown = 0
  return {
    requireRoom() {
      if (unknown >= MAX_UNKNOWN)
        throw new Problem('unavailable', 'Too many sockets wait for a key; send it in the Authorization header.')
    },
    async admit(request, ws, frames) {
      unknown += 1
      const stopCounting = cutOffBeyond(MAX_AUTH_BYTES, ws, request.raw.socket)
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(noKey()), AUTH_TIMEOUT_MS)
      try {
        const { value: frame, done } = await Promise.race([frames.next(), late])
        if (done) return false
        await checkKey(request, `Bearer ${tokenIn(frame)}`)
        return true
      } finally {
        clearTimeout(timer)
        stopCounting()
        unknown -= 1
      }
    },
  }
}

/**
 * Until the first frame is whole. Counted as it comes off the network: the library would put together a frame of any size
 * that others may send.
 */
function cutOffBeyond(bytes: number, ws: WebSocket, socket: Socket): () => void {
  let left = bytes
  let isWhole = false
  const stop = () => {
    isWhole = true
    socket.off('data', count)
  }
  // The library has had the chunk before us: what stands behind the first frame in it is of one that may be larger. A
  // listener that is taken off meanwhile is called for that chunk all the same.
  const count = (chunk: Buffer) => {
    left -= chunk.length
    if (isWhole || left >= 0) return
    stop()
    ws.close(TOO_BIG)
    ws.pause()
  }
  ws.once('message', stop)
  socket.on('data', count)
  return stop
}

function tokenIn(frame: string): string {
  try {
    if (frame.length > MAX_AUTH_BYTES) throw noKey()
    return AuthFrame.parse(JSON.parse(frame)).token
  } catch {
    throw noKey()
  }
}

const noKey = () =>
  new Problem(
    'unauthorized',
    `Send the master key in the Authorization header, or {"type": "auth", "token": …} as the first frame within ${AUTH_TIMEOUT_MS / 1000} s.`,
  )

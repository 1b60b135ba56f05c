/** The key of clients that cannot set headers, as browsers cannot: in the first frame, soon, and with little before it. */
import type { FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { AUTH_TIMEOUT_MS, AuthFrame, MAX_AUTH_BYTES } from '../../contract/socket.ts'
import { Problem } from '../../contract/problem.ts'
import { networkOf } from '../../security/client-network.ts'
import { UnauthenticatedConnections } from './unauthenticated-connections.ts'

/** RFC 6455: a message is too big to be processed. */
const TOO_BIG = 1009

export type FirstFrameKey = {
  /**
   * Resolves when the first of `frames` held a key. Throws a `Problem` when it held none, came too late, or was not there
   * when others wanted to wait; false when the connection is gone, or was ended for what it sent. All of these count as
   * requests without a right key.
   */
  readonly admit: (request: FastifyRequest, ws: WebSocket, frames: AsyncIterator<string, void>) => Promise<boolean>
}

/** As for an `Authorization` header. Throws a `Problem`. */
export type CheckKey = (request: FastifyRequest, authorization: string | undefined) => Promise<void>

export function createFirstFrameKey(checkKey: CheckKey): FirstFrameKey {
  const room = new UnauthenticatedConnections()

  /** Undefined for one that does not come in time. */
  async function firstFrame({ ip, raw }: FastifyRequest, ws: WebSocket, frames: AsyncIterator<string, void>) {
    const { promise: tooLate, resolve: giveUp } = Promise.withResolvers<undefined>()
    const leave = room.enter(networkOf(ip), () => giveUp(undefined))
    const stopCounting = cutOffBeyond(MAX_AUTH_BYTES, ws, raw.socket)
    const timer = setTimeout(() => giveUp(undefined), AUTH_TIMEOUT_MS)
    try {
      return await Promise.race([frames.next(), tooLate])
    } finally {
      clearTimeout(timer)
      stopCounting()
      leave()
    }
  }

  return {
    async admit(request, ws, frames) {
      const first = await firstFrame(request, ws, frames)
      const token = first?.done === false ? tokenIn(first.value) : undefined
      try {
        await checkKey(request, token === undefined ? undefined : `Bearer ${token}`)
        return true
      } catch (error) {
        if (first?.done) return false
        throw token === undefined && error instanceof Problem && error.code === 'unauthorized' ? noKey() : error
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

/** Undefined where there is none. */
function tokenIn(frame: string): string | undefined {
  if (frame.length > MAX_AUTH_BYTES) return undefined
  try {
    return AuthFrame.parse(JSON.parse(frame)).token
  } catch {
    return undefined // not an auth frame
  }
}

const noKey = () =>
  new Problem(
    'unauthorized',
    `Send the master key in the Authorization header, or {"type": "auth", "token": …} as the first frame within ${AUTH_TIMEOUT_MS / 1000} s.`,
  )

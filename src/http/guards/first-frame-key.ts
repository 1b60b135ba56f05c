/**
 * Authenticates clients that cannot set headers, such as browsers, by their first frame, which must be small and arrive
 * soon.
 */
import type { FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { AUTH_TIMEOUT_MS, AuthFrame, MAX_AUTH_BYTES } from '../../contract/socket.ts'
import { Problem } from '../../contract/problem.ts'
import { afterRunning } from '../../lib/bounded-wait.ts'
import { networkOf } from '../../security/client-network.ts'
import { UnauthenticatedConnections } from './unauthenticated-connections.ts'

/** RFC 6455: a message is too big to be processed. */
const TOO_BIG = 1009

declare module 'fastify' {
  interface FastifyInstance {
    firstFrameKey: FirstFrameKey
  }
}

export type FirstFrameKey = {
  /**
   * Resolves when the first of `frames` contained a valid key. Throws a `Problem` if it had none, came too late, or was
   * evicted for other waiting clients; resolves with false if the connection closed, or was ended for what it sent. All
   * of these count as requests without a valid key.
   */
  readonly admit: (request: FastifyRequest, ws: WebSocket, frames: AsyncIterator<string, void>) => Promise<boolean>
}

/** The same check as for an `Authorization` header. Throws a `Problem`. */
export type CheckKey = (request: FastifyRequest, authorization: string | undefined) => Promise<void>

export function createFirstFrameKey(checkKey: CheckKey): FirstFrameKey {
  const room = new UnauthenticatedConnections()

  /** Returns undefined if the frame does not arrive in time. */
  async function firstFrame({ ip, raw }: FastifyRequest, ws: WebSocket, frames: AsyncIterator<string, void>) {
    const { promise: tooLate, resolve: giveUp } = Promise.withResolvers<undefined>()
    const leave = room.enter(networkOf(ip), () => giveUp(undefined))
    const stopCounting = cutOffBeyond(MAX_AUTH_BYTES, ws, raw.socket)
    const cancel = afterRunning(AUTH_TIMEOUT_MS, () => giveUp(undefined))
    try {
      return await Promise.race([frames.next(), tooLate])
    } finally {
      cancel()
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
 * Applies until the first frame is complete. Counts the bytes of the network: the library would assemble a frame of any
 * size allowed for others.
 */
function cutOffBeyond(bytes: number, ws: WebSocket, socket: Socket): () => void {
  let remainingBytes = bytes
  let isWhole = false
  const stop = () => {
    isWhole = true
    socket.off('data', count)
  }
  // The library has processed the chunk before this listener: any bytes after the first frame belong to one that may be
  // larger. A listener that is removed meanwhile is still called for that chunk.
  const count = (chunk: Buffer) => {
    remainingBytes -= chunk.length
    if (isWhole || remainingBytes >= 0) return
    stop()
    ws.close(TOO_BIG)
    ws.pause()
  }
  ws.once('message', stop)
  socket.on('data', count)
  return stop
}

/** Returns undefined if the frame has no key. */
function tokenIn(frame: string): string | undefined {
  if (frame.length > MAX_AUTH_BYTES) return undefined
  try {
    return AuthFrame.parse(JSON.parse(frame)).token
  } catch {
    return undefined // it is not an auth frame
  }
}

const noKey = () =>
  new Problem(
    'unauthorized',
    `Send the master key in the Authorization header, or {"type": "auth", "token": …} as the first frame within ${AUTH_TIMEOUT_MS / 1000} s.`,
  )

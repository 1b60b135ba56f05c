/**
 * Connections over which no valid key has come: limited, because everybody who reaches the port can open them, agents among
 * them. Without a limit they take all file descriptors, and then no log can be opened, no shell started and no limit enforced.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { CheckKey } from './first-frame-key.ts'

/** The most at a time: enough for a key to arrive while somebody opens thousands in a second. */
export const MAX_KEYLESS = 4096

/** They may take this part of the file descriptors. */
const PART = 1 / 4

/** `openFiles`: how many the server may have. */
export const keylessLimit = (openFiles = Infinity): number => Math.min(MAX_KEYLESS, Math.floor(openFiles * PART))

/**
 * No new connection is refused: above the limit the oldest one without a key is closed. A client with a key sends it at once.
 * Returns the check, which lets the connection of a valid key stay.
 */
export function limitKeyless(app: Pick<FastifyInstance, 'server'>, limit: number, checkKey: CheckKey): CheckKey {
  /** A set keeps the order in which they came. */
  const keyless = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    keyless.add(socket)
    socket.once('close', () => keyless.delete(socket))
    const [oldest] = keyless
    if (keyless.size <= limit || !oldest) return
    keyless.delete(oldest)
    oldest.destroy()
  })
  return async (request, authorization) => {
    await checkKey(request, authorization)
    keyless.delete(request.raw.socket)
  }
}

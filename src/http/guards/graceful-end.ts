/**
 * Ends connections from the server's side so that the client still receives the response, even if it has not sent its
 * whole request.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterRunning } from '../../lib/bounded-wait.ts'

/** How long to wait for the client to close its side, in milliseconds. */
const LINGER_MS = 2000

const ending = new WeakSet<Socket>()

/**
 * Sends `lastWords`, accepts no further request, and destroys the socket when the client has closed its side, or after
 * `LINGER_MS`. Closing a socket with unread bytes immediately would make the kernel send a reset, which discards a
 * response that the client has not read yet.
 */
export function endGracefully(socket: Socket, lastWords = ''): void {
  if (socket.destroyed || ending.has(socket)) return
  ending.add(socket)
  socket.end(lastWords)
  // The parser is one of these listeners. After the first new listener Node passes it nothing more.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  // The client may reset it now.
  socket.on('error', () => {})
  socket.resume()
  socket.once(
    'close',
    afterRunning(LINGER_MS, () => socket.destroy()),
  )
}

/** Replaces the method by which Node ends a connection immediately after a response with `Connection: close`. */
export function endAllGracefully({ server }: Pick<FastifyInstance, 'server'>): void {
  server.on('connection', (socket: Socket) => {
    socket.destroySoon = () => endGracefully(socket)
  })
}

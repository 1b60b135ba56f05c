/** How connections end from this side: the client gets the answer also where it has not sent all of its request. */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** How long a client that does not end its side is waited for, milliseconds. */
const LINGER_MS = 2000

const ending = new WeakSet<Socket>()

/**
 * Says `lastWords`, takes nothing more as a request, and destroys the socket when the client has ended its side too, or
 * after `LINGER_MS`. Closing a socket with unread bytes at once would make the kernel send a reset, which takes an answer
 * that the client has not read yet away from it.
 */
export function endGracefully(socket: Socket, lastWords = ''): void {
  if (socket.destroyed || ending.has(socket)) return
  ending.add(socket)
  socket.end(lastWords)
  // The parser is one of these. With the first new listener Node passes it nothing more.
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** Node ends a connection after an answer with `Connection: close` by this method, at once. */
export function endAllGracefully({ server }: Pick<FastifyInstance, 'server'>): void {
  server.on('connection', (socket: Socket) => {
    socket.destroySoon = () => endGracefully(socket)
  })
}

/**
 * Runs the requests of a connection one after the other. Node runs them together when a client sends many without waiting
 * for the answers (pipelining), and keeps all answers in memory until the client reads them.
 */
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** No client is known that sends more than some tens. */
const MAX_WAITING = 100

/** Call it before other hooks are added. A connection with more waiting requests is closed. */
export function runInOrder(app: FastifyInstance): void {
  const waiting = new WeakMap<Socket, number>()
  const add = (socket: Socket, more: number) => {
    const count = (waiting.get(socket) ?? 0) + more
    waiting.set(socket, count)
    return count
  }
  app.addHook('onRequest', (request, { raw: response }, callback) => {
    // A response gets the socket when all earlier ones have been sent.
    if (response.socket) return callback()
    const { socket } = request.raw
    if (add(socket, 1) > MAX_WAITING) return void socket.destroy()
    response.once('socket', () => {
      add(socket, -1)
      callback()
    })
  })
}

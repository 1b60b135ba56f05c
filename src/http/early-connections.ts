/** Connections that come before the HTTP server exists: they wait for it, and `GET /alive` is answered. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { endGracefully } from './guards/graceful-end.ts'
import { SECURITY_HEADERS } from './guards/security-headers.ts'

/** Further connections are closed at once. */
const MAX_WAITING = 1000

/** Longer than a start takes, unless a disk does not answer; in milliseconds. */
const WAIT_MS = 60_000

export class EarlyConnections {
  readonly #waitMs: number
  readonly #waiting = new Map<Socket, () => void>()
  #server: Server | undefined

  /** `waitMs`: connections that have waited for so long are closed. */
  constructor({ waitMs = WAIT_MS } = {}) {
    this.#waitMs = waitMs
  }

  add(socket: Socket): void {
    // The listener stays for the whole life of the socket: a client may reset it at any time, also when it has its
    // answer, and an error that nobody listens for would end the server.
    socket.on('error', () => {})
    if (this.#server) pass(socket, this.#server)
    else if (this.#waiting.size < MAX_WAITING) this.#hold(socket)
    else socket.destroy()
  }

  /** The server must listen somewhere: before that it has no time limits for connections. */
  passTo(server: Server): void {
    this.#server = server
    for (const [socket, release] of this.#waiting) {
      release()
      pass(socket, server)
      socket.resume()
    }
  }

  endWaiting(): void {
    for (const socket of this.#waiting.keys()) socket.destroy()
  }

  #hold(socket: Socket): void {
    // Later bytes wait in the buffers of the stream and the kernel.
    const read = (bytes: Buffer) => {
      socket.pause()
      if (isHealthCheck(bytes.toString('latin1'))) {
        release()
        endGracefully(socket, aliveAnswer())
      } else socket.unshift(bytes)
    }
    const end = () => socket.destroy()
    const release = () => {
      this.#waiting.delete(socket)
      socket.setTimeout(0)
      socket.off('data', read).off('end', end).off('error', end).off('timeout', end).off('close', release)
    }
    this.#waiting.set(socket, release)
    socket.setTimeout(this.#waitMs)
    socket.once('data', read).on('end', end).on('error', end).on('timeout', end).on('close', release)
  }
}

function pass(socket: Socket, server: Server): void {
  if (server.listening) server.emit('connection', socket)
  else socket.destroy()
}

/** A whole request without a body, from no page of another origin. Any other is answered by the HTTP server. */
const isHealthCheck = (text: string): boolean =>
  text.startsWith('GET /alive HTTP/1.1\r\n') &&
  text.indexOf('\r\n\r\n') === text.length - 4 &&
  /\r\nhost: ?[^\s]+\r\n/i.test(text) &&
  !/\r\n(?:content-length|transfer-encoding|upgrade|expect|origin|x-request-id)[\t ]*:/i.test(text)

function aliveAnswer(): string {
  const body = '{"status":"ok"}'
  const headers = {
    ...SECURITY_HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    date: new Date().toUTCString(),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 200 OK\r\n${lines.join('')}\r\n${body}`
}

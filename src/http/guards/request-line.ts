/**
 * Compares the first line of each request with the bytes that were received. Node's parser accepts several spaces in it,
 * blank lines before it, and other protocols, which it reports as HTTP. A proxy in front may understand them differently.
 */
import { METHODS } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { MAX_HEADER_BYTES } from './client-error.ts'

const NOTHING = Buffer.alloc(0)
const END_OF_HEAD = '\r\n\r\n'
/** A client may send one line break after the body of its last request (RFC 9112, section 2.2). */
const BEFORE_FIRST: ReadonlySet<string> = new Set(['', '\r\n'])

/** Returns a function that is true for a request whose first line was not as it has to be. */
export function watchRequestLines({ server }: Pick<FastifyInstance, 'server'>): (request: IncomingMessage) => boolean {
  const watches = new WeakMap<Socket, ReceivedBytes>()
  const bad = new WeakSet<IncomingMessage>()
  const check = (request: IncomingMessage) => {
    if (watches.get(request.socket)?.begin(request) === false) bad.add(request)
    if (METHODS.includes(request.method ?? '')) return
    // The parser knows methods of other protocols, and the router fails with them.
    bad.add(request)
    request.method = 'GET'
  }
  server.on('connection', (socket: Socket) => watches.set(socket, new ReceivedBytes(socket)))
  server.prependListener('request', check)
  server.prependListener('upgrade', (request: IncomingMessage) => {
    check(request)
    watches.get(request.socket)?.stop()
  })
  return (request) => bad.has(request)
}

/** What a connection has received since the last first line: of a body only the present piece. */
class ReceivedBytes {
  readonly #socket: Socket
  #bytes: Buffer = NOTHING
  #request: IncomingMessage | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    // One before the parser, which reports requests while it reads, and one after it.
    socket.prependListener('data', this.#add)
    socket.on('data', this.#drop)
  }

  stop(): void {
    this.#socket.off('data', this.#add).off('data', this.#drop)
  }

  /** Returns false if its line was not received as it has to be. Call it when the parser reports the request. */
  begin(request: IncomingMessage): boolean {
    // Some requests are reported again, with another event.
    if (this.#request === request) return true
    const isFirst = this.#request === undefined
    this.#request = request
    const line = `${request.method} ${request.url} HTTP/${request.httpVersion}\r\n`
    const at = this.#bytes.indexOf(line, 0, 'latin1')
    if (at === -1) return false
    const before = this.#bytes.subarray(0, at)
    this.#bytes = this.#bytes.subarray(at + line.length)
    return !isFirst || BEFORE_FIRST.has(before.toString('latin1'))
  }

  readonly #add = (chunk: Buffer): void => {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
  }

  /** Keeps what may be the beginning of the next request. A copy: the piece itself may be part of a large buffer. */
  readonly #drop = (): void => {
    const isBody = this.#request?.complete === false
    const end = this.#bytes.lastIndexOf(END_OF_HEAD)
    const isWhole = end !== -1 && end + END_OF_HEAD.length === this.#bytes.length
    const from = Math.max(end, this.#bytes.length - MAX_HEADER_BYTES, 0)
    this.#bytes = isBody || isWhole ? NOTHING : Buffer.from(this.#bytes.subarray(from))
  }
}

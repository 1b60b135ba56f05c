/**
 * Compares the first line of each request with the bytes that were received. Node's parser accepts several spaces in it,
 * blank lines before it, and other protocols, which it reports as HTTP. A proxy in front may understand them differently.
 */
import { METHODS } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { MAX_HEADER_BYTES } from './client-error.ts'

/** Returns a function that is true for a request whose first line was not as it has to be. */
export function watchRequestLines({ server }: Pick<FastifyInstance, 'server'>): (request: IncomingMessage) => boolean {
  const watches = new WeakMap<Socket, ReceivedLines>()
  const bad = new WeakSet<IncomingMessage>()
  const check = (request: IncomingMessage) => {
    if (watches.get(request.socket)?.begin(request) === false) bad.add(request)
    if (METHODS.includes(request.method ?? '')) return
    // The parser knows methods of other protocols, and the router fails with them.
    bad.add(request)
    request.method = 'GET'
  }
  server.on('connection', (socket: Socket) => {
    const watch = new ReceivedLines()
    watches.set(socket, watch)
    // Before the parser, which reports requests while it reads.
    socket.prependListener('data', watch.add)
  })
  server.prependListener('request', check)
  server.prependListener('upgrade', (request: IncomingMessage) => {
    check(request)
    const watch = watches.get(request.socket)
    if (watch) request.socket.off('data', watch.add)
    watches.delete(request.socket)
  })
  return (request) => bad.has(request)
}

/** What a connection receives next, after the body if `#skip` counts one. */
type Place = 'line' | 'headers' | 'end of head' | 'chunks' | 'trailers'

/** The method, the spaces and the version, in addition to a URL of that length. */
const MAX_LINE_BYTES = MAX_HEADER_BYTES + 64

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13]
const END_OF_HEAD = '\r\n\r\n'
/** A line break after the body of the last request is allowed, once (RFC 9112, section 2.2). */
const EMPTY = '\r'
const NOTHING = Buffer.alloc(0)

/**
 * Follows the bytes of a connection from head to head, so that the first line is found where it is, and no other text
 * counts as one: neither a header nor a body. Keeps no more than the line that has not ended yet.
 */
class ReceivedLines {
  #place: Place = 'line'
  /** Bytes of a body or a chunk that come before the next line. */
  #skip = 0
  /** The present line: without its line feed. */
  #text = ''
  #first = ''
  #hasEmpty = false
  /** The bytes of the current piece that follow the end of a head. */
  #rest: Buffer = NOTHING
  #latest: IncomingMessage | undefined

  readonly add = (piece: Buffer): void => {
    // The parser reports a request within the piece in which its head ends, unless it has failed.
    this.#rest = NOTHING
    const isAtStart = this.#place === 'line' && this.#skip === 0 && this.#text === '' && piece[0] !== CARRIAGE_RETURN
    const end = isAtStart ? piece.indexOf(END_OF_HEAD) : -1
    if (end === -1) return this.#follow(piece)
    // Most pieces begin with a whole head. Of that, only the first line is looked at.
    this.#first = piece.toString('latin1', 0, piece.indexOf(LINE_FEED))
    this.#place = 'end of head'
    this.#rest = piece.subarray(end + END_OF_HEAD.length)
  }

  /**
   * Returns false if its line was not received as it has to be. Call it when the parser reports the request: some are
   * reported again, with another event.
   */
  begin(request: IncomingMessage): boolean | undefined {
    if (this.#latest === request) return undefined
    this.#latest = request
    const { method, url, httpVersion, headers } = request
    const isAsReceived = this.#place === 'end of head' && this.#first === `${method} ${url} HTTP/${httpVersion}${EMPTY}`
    this.#first = ''
    this.#enterBody(headers)
    const rest = this.#rest
    this.#rest = NOTHING
    this.#follow(rest)
    return isAsReceived
  }

  #enterBody({ 'transfer-encoding': encoding, 'content-length': length = '0' }: IncomingHttpHeaders): void {
    this.#hasEmpty = false
    this.#skip = encoding === undefined ? Number(length) : 0
    this.#place = encoding === undefined ? 'line' : 'chunks'
  }

  #follow(piece: Buffer): void {
    let at = 0
    while (at < piece.length) {
      if (this.#place === 'end of head') {
        this.#rest = piece.subarray(at)
        return
      }
      const passedBytes = Math.min(this.#skip, piece.length - at)
      this.#skip -= passedBytes
      at += passedBytes
      if (at < piece.length) at = this.#readLine(piece, at)
    }
  }

  /** Returns where the next line begins. */
  #readLine(piece: Buffer, from: number): number {
    const end = piece.indexOf(LINE_FEED, from)
    const to = end === -1 ? piece.length : end
    const room = MAX_LINE_BYTES - this.#text.length
    this.#text += piece.toString('latin1', from, Math.min(to, from + room))
    if (end === -1) return to
    const text = this.#text
    this.#text = ''
    this.#take(text)
    return end + 1
  }

  #take(text: string): void {
    const isEmpty = text === EMPTY || text === ''
    switch (this.#place) {
      case 'line':
        if (text === EMPTY && !this.#hasEmpty) this.#hasEmpty = true
        else [this.#first, this.#place] = [text, 'headers']
        break
      case 'headers':
        if (isEmpty) this.#place = 'end of head'
        break
      case 'chunks': {
        const size = Number.parseInt(text, 16)
        if (size > 0) this.#skip = size + 2
        else this.#place = 'trailers'
        break
      }
      case 'trailers':
        if (isEmpty) this.#place = 'line'
        break
      case 'end of head': // followed by a body or the next line, once the request is reported
        break
    }
  }
}

/**
 * Ends requests whose body comes too slowly: each holds a connection, and memory for what is there. The watch begins with
 * the request, before anything is known of the route or the key.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { answerAndClose, tooSlow } from './client-error.ts'
import { endGracefully } from './graceful-end.ts'

export type BodyTimes = {
  /** For a whole JSON body, and for any body until the request has shown the key, milliseconds. */
  readonly jsonMs: number
  /** For any other, and for whatever is taken as a file, large and on a slow line: how long nothing at all may come. */
  readonly silenceMs: number
}

export const BODY_TIMES: BodyTimes = { jsonMs: 60_000, silenceMs: 30_000 }

export type BodyWatch = {
  /** From now on only a silence ends the request. For one that has shown the key, and whose route takes large bodies. */
  readonly allowSlow: (request: IncomingMessage) => void
}

export function watchBodies({ server }: Pick<FastifyInstance, 'server'>, times: BodyTimes): BodyWatch {
  const watches = new WeakMap<IncomingMessage, SlowBody>()
  // Before the framework: it answers some requests without a hook.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (hasBody(request)) watches.set(request, new SlowBody(request, response, times))
  })
  return { allowSlow: (request) => watches.get(request)?.allowSlow() }
}

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0

/** The body of one request while it arrives. */
class SlowBody {
  readonly #request: IncomingMessage
  /** The request itself forgets it. */
  readonly #socket: Socket
  readonly #response: ServerResponse
  readonly #times: BodyTimes
  #timer: NodeJS.Timeout
  #isSlowAllowed = false
  #received = 0

  constructor(request: IncomingMessage, response: ServerResponse, times: BodyTimes) {
    this.#request = request
    this.#socket = request.socket
    this.#response = response
    this.#times = times
    this.#timer = setTimeout(() => this.#look(), times.jsonMs)
    request.once('close', () => clearTimeout(this.#timer))
    response.once('finish', () => {
      // The rest is not needed, and cannot be distinguished from what follows on this connection.
      if (!request.complete) endGracefully(this.#socket)
    })
  }

  allowSlow(): void {
    if (this.#isSlowAllowed || this.#request.destroyed) return
    this.#isSlowAllowed = true
    this.#received = this.#socket.bytesRead
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), this.#times.silenceMs)
  }

  #look(): void {
    const socket = this.#socket
    if (this.#request.complete || socket.destroyed) return
    if (this.#isSlowAllowed && socket.bytesRead !== this.#received) {
      this.#received = socket.bytesRead
      return void this.#timer.refresh()
    }
    // Another answer of this connection comes first: nothing can be said.
    if (this.#response.socket !== socket) return void socket.destroy()
    if (!this.#response.headersSent) this.#response.statusCode = 408 // for the log
    answerAndClose(socket, tooSlow())
  }
}

/**
 * Ends requests whose body arrives too slowly: each holds a connection and memory. The timer starts with the request,
 * before its route or key is known.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterRead } from '../../lib/bounded-wait.ts'
import { answerAndClose, tooSlow } from './client-error.ts'
import { endGracefully } from './graceful-end.ts'

export type BodyTimes = {
  /** Milliseconds for a whole JSON body, and for any body until the key has been checked. */
  readonly jsonMs: number
  /** Milliseconds for file uploads, which may be large and slow: the maximum pause between bytes. */
  readonly silenceMs: number
}

export const BODY_TIMES: BodyTimes = { jsonMs: 60_000, silenceMs: 30_000 }

export type BodyWatch = {
  /** Makes only a pause end the request, from now on. Call it for requests with a valid key, on routes with large bodies. */
  readonly allowSlow: (request: IncomingMessage) => void
}

export function watchBodies({ server }: Pick<FastifyInstance, 'server'>, times: BodyTimes): BodyWatch {
  const watches = new WeakMap<IncomingMessage, SlowBody>()
  // Register before the framework does: it answers some requests without running a hook.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (hasBody(request)) watches.set(request, new SlowBody(request, response, times))
  })
  return { allowSlow: (request) => watches.get(request)?.allowSlow() }
}

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0

/** Watches the body of one request while it arrives. */
class SlowBody {
  readonly #request: IncomingMessage
  /** Stored here because the request itself loses the reference. */
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
    this.#timer = setTimeout(this.#onTime, times.jsonMs)
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
    this.#timer = setTimeout(this.#onTime, this.#times.silenceMs)
  }

  readonly #onTime = () => afterRead(() => this.#look())

  #look(): void {
    const socket = this.#socket
    if (this.#request.complete || socket.destroyed) return
    if (this.#isSlowAllowed && socket.bytesRead !== this.#received) {
      this.#received = socket.bytesRead
      return void this.#timer.refresh()
    }
    // An earlier response of this connection is still pending: no error can be sent.
    if (this.#response.socket !== socket) return void socket.destroy()
    if (!this.#response.headersSent) this.#response.statusCode = 408 // for the log
    answerAndClose(socket, tooSlow())
  }
}

/** Ends requests whose body comes too slowly: each holds a connection, and memory for what is there. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerAndClose, tooSlow } from './client-error.ts'

export type BodyTimes = {
  /** For a whole JSON body, milliseconds. */
  readonly jsonMs: number
  /** For any other, and for whatever is taken as a file, large and on a slow line: how long nothing at all may come. */
  readonly silenceMs: number
}

export const BODY_TIMES: BodyTimes = { jsonMs: 60_000, silenceMs: 30_000 }

export function watchBody(request: FastifyRequest, reply: FastifyReply, { jsonMs, silenceMs }: BodyTimes): void {
  const { raw, headers, routeOptions } = request
  if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0)) return
  const isJson = !routeOptions.config.takesFiles && /^application\/json\b/i.test(headers['content-type'] ?? '')
  const { socket } = raw
  let received = socket.bytesRead
  const timer = setTimeout(look, isJson ? jsonMs : silenceMs)
  raw.once('close', () => clearTimeout(timer))

  function look(): void {
    if (raw.complete || socket.destroyed) return
    // Refused already: then only the rest of it was waited for.
    if (reply.raw.headersSent) return void raw.destroy()
    if (isJson || socket.bytesRead === received) return answerAndClose(socket, tooSlow())
    received = socket.bytesRead
    timer.refresh()
  }
}

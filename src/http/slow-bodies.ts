/** Ends requests whose body comes too slowly: each holds a connection, and memory for what is there. */
import type { FastifyRequest } from 'fastify'
import { answerAndClose, tooSlow } from './client-error.ts'

export type BodyTimes = {
  /** For a whole JSON body, milliseconds. */
  readonly jsonMs: number
  /** For any other, which may be a large file on a slow line: how long nothing at all may come. */
  readonly silenceMs: number
}

export const BODY_TIMES: BodyTimes = { jsonMs: 60_000, silenceMs: 30_000 }

export function watchBody({ raw, headers }: FastifyRequest, { jsonMs, silenceMs }: BodyTimes): void {
  if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0)) return
  const isJson = /^application\/json\b/i.test(headers['content-type'] ?? '')
  const { socket } = raw
  let received = socket.bytesRead
  const timer = setTimeout(look, isJson ? jsonMs : silenceMs)
  raw.once('close', () => clearTimeout(timer))

  function look(): void {
    if (raw.complete || socket.destroyed) return
    if (isJson || socket.bytesRead === received) return answerAndClose(socket, tooSlow())
    received = socket.bytesRead
    timer.refresh()
  }
}

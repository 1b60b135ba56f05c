/** A signal for work done on behalf of a client: aborted when the connection is gone. */
import type { FastifyReply } from 'fastify'

export function closeSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}

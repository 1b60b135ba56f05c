/** A signal for work done on behalf of a client: aborted when the connection is gone. */
import type { FastifyReply } from 'fastify'

export function closeSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  // It may have gone while the request was looked at, and then there is no second event.
  if (reply.raw.closed || reply.raw.destroyed) controller.abort()
  else reply.raw.once('close', () => controller.abort())
  return controller.signal
}

/** A signal for work done on behalf of a client: aborted when the connection is gone. */
import type { FastifyReply } from 'fastify'

/** Aborted by `ended` too, which may live much longer: nothing of this reply stays with it. */
export function closeSignal(reply: FastifyReply, ended?: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const abort = () => controller.abort()
  // It may have gone while the request was looked at, and then there is no second event.
  if (reply.raw.closed || reply.raw.destroyed || ended?.aborted) abort()
  else {
    ended?.addEventListener('abort', abort)
    reply.raw.once('close', () => {
      ended?.removeEventListener('abort', abort)
      abort()
    })
  }
  return controller.signal
}

/** Creates a signal for work on behalf of a client: aborted when the connection closes. */
import type { FastifyReply } from 'fastify'

/** Also aborted by `ended`, which may live much longer: it keeps no reference to this reply. */
export function closeSignal(reply: FastifyReply, ended?: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const abort = () => controller.abort()
  // The connection may have closed before this call, and then there is no further event.
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

/** Creates a signal for work on behalf of a client: aborted when the connection closes or the key of the request ends. */
import type { FastifyReply } from 'fastify'

/** The signal of the key may live much longer: it keeps no reference to this reply. */
export function closeSignal(reply: FastifyReply): AbortSignal {
  const endSignal = reply.request.access?.ended
  const controller = new AbortController()
  const abort = () => controller.abort()
  // The connection may have closed before this call, and then there is no further event.
  if (reply.raw.closed || reply.raw.destroyed || endSignal?.aborted) abort()
  else {
    endSignal?.addEventListener('abort', abort)
    reply.raw.once('close', () => {
      endSignal?.removeEventListener('abort', abort)
      abort()
    })
  }
  return controller.signal
}

/** The same for a body that comes or goes slowly: it is cut off when the key of the request ends. */
export function cuttingSignal(reply: FastifyReply): AbortSignal {
  const signal = closeSignal(reply)
  signal.addEventListener('abort', () => reply.raw.destroy(), { once: true })
  return signal
}

/**
 * Event streams while the server starts or stops. An `EventSource` reconnects after a lost connection, but gives up
 * permanently on an error status: so its request waits for the start, and while the server stops its connection is
 * dropped.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { withinTime } from '../../lib/bounded-wait.ts'
import { closeSignal } from '../close-signal.ts'

/** Longer than a start takes; after that the connection is dropped, and the client reconnects. In milliseconds. */
const START_TIMEOUT_MS = 25_000

/** An `EventSource` accepts nothing else. A client that accepts anything can handle an error status. */
export const wantsEventStream = ({ routeOptions, headers }: FastifyRequest): boolean =>
  routeOptions.config.takesTicket === true && /text\/event-stream/i.test(headers.accept ?? '')

/** Resolves when the server has started, or the client has disconnected. */
export async function waitToStream(
  reply: FastifyReply,
  untilStarted: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await withinTime(START_TIMEOUT_MS, closeSignal(reply), untilStarted).catch(() => dropConnection(reply))
}

/** Drops the connection without a response. */
export function dropConnection(reply: FastifyReply): FastifyReply {
  reply.hijack()
  reply.raw.destroy()
  return reply
}

/**
 * Event streams that cannot begin now. An `EventSource` reconnects when its stream ends or its connection is lost, but
 * gives up permanently on any status other than 200 (HTML Standard, 9.2.3). So its request waits for the start of the
 * server, and a failure that may be over soon is a stream that ends. Other failures keep their status: to try again
 * would not help.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../contract/problem.ts'
import { withinTime } from '../../lib/bounded-wait.ts'
import { closeSignal } from './close-signal.ts'

/**
 * How long a request waits while the server starts, in milliseconds: longer than a start takes, and less than the 30 s
 * after which many clients give up. After that the connection of a stream is dropped, and the client reconnects.
 */
export const START_TIMEOUT_MS = 25_000

/** An `EventSource` accepts nothing else. A client that accepts anything can handle an error status. */
export const wantsEventStream = ({ routeOptions, headers }: FastifyRequest): boolean =>
  routeOptions.config.takesTicket === 'stream' && /^\s*text\/event-stream\s*$/i.test(headers.accept ?? '')

/** True if the same request may succeed later: the server or its disk fails, or too much is open now. */
export const isTransient = ({ status }: Problem): boolean => status >= 500 || status === 429

/** Answers with a stream that consists of the problem; the client reconnects after the time that the problem states. */
export function endStream(reply: FastifyReply, problem: Problem): FastifyReply {
  const retryAfter = problem.details?.['retry_after']
  const retryMs = typeof retryAfter === 'number' ? retryAfter * 1000 : RETRY_MS
  void reply.headers({ 'cache-control': 'no-cache, no-transform', connection: 'close' })
  return reply
    .code(200)
    .type('text/event-stream')
    .send(`retry: ${retryMs}\n${errorFrame(problem)}`)
}

/** Reconnection delay of clients, in milliseconds. */
export const RETRY_MS = 1000

export const errorFrame = (problem: Problem): string =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', ...problem.toBody() })}\n\n`

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

/** Sends an error before the first byte of a stream, with the headers that it has in every protocol. */
import type { FastifyReply } from 'fastify'
import type { Problem, ProblemCode } from '../../contract/problem.ts'

/** `retryAfter`: seconds. */
type ErrorReply = {
  readonly status: number
  readonly retryAfter: number | undefined
  readonly type: string
  readonly body: string
}

export function sendErrorReply(reply: FastifyReply, { status, retryAfter, type, body }: ErrorReply): FastifyReply {
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter)
  if (status === 401) void reply.header('www-authenticate', 'Bearer realm="agent-server"').header('connection', 'close')
  if (status === 426) void reply.header('upgrade', 'websocket').header('connection', 'upgrade')
  return reply.code(status).type(type).send(body)
}

/** What another request does now, and ends soon. */
const PASSING: ReadonlySet<ProblemCode> = new Set([
  'already_running',
  'conversation_changed',
  'conversation_running',
  'idempotency_in_flight',
])

/** Returns seconds; undefined if the same request would be refused again. */
export function retryAfterOf({ code, status, details }: Problem): number | undefined {
  const seconds = details?.['retry_after'] ?? (PASSING.has(code) || status === 503 ? 1 : undefined)
  return typeof seconds === 'number' ? seconds : undefined
}

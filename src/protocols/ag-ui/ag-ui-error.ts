/** Errors before the first event of a run: a status, and the body that all routes of the API have. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { OpenAiError } from '../openai/openai-error.ts'

/** Clients that ask for an event stream get these, too, and no stream. */
export function sendProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  const problem = problemFor(asProblem(error), request, redact)
  const givenSeconds = problem.details?.['retry_after']
  const seconds = typeof givenSeconds === 'number' ? givenSeconds : problem.status === 503 ? 1 : undefined
  if (seconds !== undefined) void reply.header('retry-after', seconds)
  if (problem.status === 401)
    void reply.header('www-authenticate', 'Bearer realm="agent-server"').header('connection', 'close')
  return reply.code(problem.status).type('application/json').send(JSON.stringify(problem.toBody()))
}

/** Parts that both gateways use throw the errors of the other one. */
function asProblem(error: unknown): unknown {
  if (!(error instanceof OpenAiError)) return error
  const { status, message, retryAfter } = error
  if (status !== 409) return new Problem('invalid_request', message)
  return new Problem('conversation_running', message, { details: { retry_after: retryAfter ?? 1 } })
}

/** Errors before the first event of a run: a status, and the body that all routes of the API have. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

/** Clients that ask for an event stream get these, too, and no stream. */
export function sendProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  const problem = problemFor(error, request, redact)
  const body = JSON.stringify(problem.toBody())
  const { status } = problem
  return sendErrorReply(reply, { status, retryAfter: retryAfterOf(problem), type: 'application/json', body })
}

/** Errors in the form of this protocol: clients show the body, so it is the sentence that says what to do. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

/** The error handler of the routes. */
export function sendUiError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  const problem = problemFor(error, request, redact)
  const { status, message: body } = problem
  return sendErrorReply(reply, { status, retryAfter: retryAfterOf(problem), type: 'text/plain; charset=utf-8', body })
}

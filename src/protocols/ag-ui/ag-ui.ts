/** What the routes of AG-UI do, in one module, which is loaded when it is used. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

export { runAgent, stopAgent, conversationOfThread } from './run-agent.ts'

/** Sends the body that all routes of the API have. Clients that ask for an event stream get it, too, and no stream. */
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

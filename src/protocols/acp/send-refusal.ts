/** Refuses a connection before the protocol is spoken: with the status of HTTP, and an error of JSON-RPC. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'
import { errorOfServer } from './protocol-errors.ts'

export function sendRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemFor(error, request)
  const { status } = problem
  const { code, message, data } = errorOfServer(AgentServerError.fromBody(problem.toBody(), { status }))
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message, data } })
  return sendErrorReply(reply, { status, retryAfter: retryAfterOf(problem), type: 'application/json', body })
}

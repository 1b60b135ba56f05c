/** Errors in the form of this protocol: clients show the body, so it is the sentence that says what to do. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendError } from '../openai/openai-error.ts'

/** The error handler of the routes. */
export function sendUiError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  return sendError(error, request, reply, redact, ({ message }) => ({
    type: 'text/plain; charset=utf-8',
    body: message,
  }))
}

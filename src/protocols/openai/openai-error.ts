/** Errors in the form of the OpenAI API. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem, ProblemCode } from '../../contract/problem.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

type OpenAiErrorOptions = { readonly code?: string; readonly param?: string; readonly retryAfter?: number }

/** A refusal that other routes do not know. */
export class OpenAiError extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | null
  /** Seconds. */
  readonly retryAfter: number | undefined

  constructor(status: number, message: string, { code = 'invalid_value', param, retryAfter }: OpenAiErrorOptions = {}) {
    super(message)
    this.name = 'OpenAiError'
    this.status = status
    this.code = code
    this.param = param ?? null
    this.retryAfter = retryAfter
  }
}

export const UNKNOWN_MODEL = 'model_not_found'

/** The error for a `model` that is neither a profile nor a model that may be asked. */
export const unknownModel = (
  message = 'The model does not exist, or you have no access to it. GET /v1/models lists yours.',
): OpenAiError => new OpenAiError(404, message, { code: UNKNOWN_MODEL, param: 'model' })

/** The codes that clients of OpenAI know. */
const CODES: Partial<Record<ProblemCode, string>> = {
  unauthorized: 'invalid_api_key',
  forbidden: 'permission_denied',
  too_many_attempts: 'rate_limit_exceeded',
  profile_not_found: UNKNOWN_MODEL,
  internal: 'server_error',
}

export type ErrorObject = {
  readonly message: string
  readonly type: string
  readonly code: string
  readonly param: string | null
}

/** Returns what a client may see of an error. `redact` knows the secrets of the conversation. */
export function errorObject(
  error: unknown,
  request: FastifyRequest,
  redact: (text: string) => string,
): { status: number; retryAfter: number | undefined; error: ErrorObject } {
  const own = error instanceof OpenAiError ? error : fromProblem(problemFor(error, request, redact))
  const { status, retryAfter, message, code, param } = own
  return { status, retryAfter, error: { message: redact(message), type: typeOf(status), code, param } }
}

function fromProblem(problem: Problem): OpenAiError {
  const { status, message, code, details } = problem
  const field = code === 'invalid_request' ? wrongFieldIn(details) : undefined
  if (field !== undefined) return new OpenAiError(status, message, field === '' ? {} : { param: field })
  const retryAfter = retryAfterOf(problem)
  return new OpenAiError(status, message, {
    code: CODES[code] ?? code,
    ...(retryAfter !== undefined && { retryAfter }),
  })
}

/** The body is the empty text. */
function wrongFieldIn(details: Problem['details']): string | undefined {
  const errors = details?.['errors']
  const path: unknown = Array.isArray(errors) ? Object(errors[0])['path'] : undefined
  return typeof path === 'string' ? path : undefined
}

function typeOf(status: number): string {
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

/** The error handler of the routes. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
): FastifyReply {
  const { status, retryAfter, error: errorBody } = errorObject(error, request, redact)
  // Clients of OpenAI repeat requests with these statuses, and this one would be refused again.
  if (retryAfter === undefined && (status === 409 || status === 507)) void reply.header('x-should-retry', 'false')
  const body = JSON.stringify({ error: errorBody })
  return sendErrorReply(reply, { status, retryAfter, type: 'application/json', body })
}

/** Errors in the form of the OpenAI API. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ProblemCode } from '../../contract/problem.ts'
import { Problem } from '../../contract/problem.ts'
import { problemFor } from '../../http/request/problem-handler.ts'

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

export const refusal = (param: string, message: string): OpenAiError =>
  new OpenAiError(400, `${param}: ${message}`, { param })

/** The codes that clients of OpenAI know. */
const CODES: Partial<Record<ProblemCode, string>> = {
  unauthorized: 'invalid_api_key',
  forbidden: 'permission_denied',
  too_many_attempts: 'rate_limit_exceeded',
  profile_not_found: 'model_not_found',
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
): { status: number; error: ErrorObject } {
  const own = error instanceof OpenAiError ? error : fromProblem(problemFor(error, request, redact))
  const { status, message, code, param } = own
  return { status, error: { message: redact(message), type: typeOf(status), code, param } }
}

function fromProblem(problem: Problem): OpenAiError {
  return new OpenAiError(problem.status, problem.message, { code: CODES[problem.code] ?? problem.code })
}

function typeOf(status: number): string {
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

type ErrorText = { readonly type: string; readonly body: string }

const asJson = (error: ErrorObject): ErrorText => ({ type: 'application/json', body: JSON.stringify({ error }) })

/** The error handler of the routes. Another protocol has another form. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string,
  format: (error: ErrorObject) => ErrorText = asJson,
): FastifyReply {
  const { status, error: errorBody } = errorObject(error, request, redact)
  const givenSeconds =
    error instanceof OpenAiError ? error.retryAfter : error instanceof Problem ? retryAfterOf(error) : undefined
  const seconds = givenSeconds ?? (status === 503 ? 1 : undefined)
  if (seconds !== undefined) void reply.header('retry-after', seconds)
  // Clients of OpenAI repeat requests with these statuses, and this one would be refused again.
  else if (status === 409 || status === 507) void reply.header('x-should-retry', 'false')
  if (status === 401) void reply.header('www-authenticate', 'Bearer realm="agent-server"').header('connection', 'close')
  const { type, body } = format(errorBody)
  return reply.code(status).type(type).send(body)
}

/** What another request does now, and ends soon. */
const PASSING: ReadonlySet<ProblemCode> = new Set([
  'already_running',
  'conversation_changed',
  'conversation_running',
  'idempotency_in_flight',
])

function retryAfterOf({ code, details }: Problem): number | undefined {
  const seconds = details?.['retry_after'] ?? (PASSING.has(code) ? 1 : undefined)
  return typeof seconds === 'number' ? seconds : undefined
}

/** Converts thrown errors to responses: every error response is created here, and none quotes what the client sent. */
import { randomUUID } from 'node:crypto'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { keyEnded } from '../../access/access.ts'
import { describeIssue, Problem } from '../../contract/problem.ts'
import type { ProblemCode } from '../../contract/problem.ts'
import { isStartRefused } from '../../lib/start-process.ts'
import { codeOf, isOutOfDescriptors, isOutOfRoom } from '../../lib/error-code.ts'
import { redactProblem } from '../../security/redaction/redact-problem.ts'
import { dropConnection, endStream, isTransient, wantsEventStream } from './lasting-streams.ts'
import { withRedaction } from '../../telemetry/logger.ts'

/** More issues would not help to correct the request. */
const MAX_ISSUES = 20

/** `redact` knows the secrets of the conversation that the request refers to. */
export function handleError(
  error: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
  redact: (text: string) => string = (text) => text,
): FastifyReply {
  const shownProblem = problemFor(error, request, redact)
  // What its request was doing was cut off, or must not be shown any more.
  const problem = request.access?.ended.aborted && shownProblem.status < 500 ? keyEnded() : shownProblem
  if (isTransient(problem) && wantsEventStream(request)) {
    if (request.access) return endStream(reply, problem)
    if (problem.status === 503) return dropConnection(reply)
  }
  if (problem.code === 'unauthorized') void reply.header('www-authenticate', 'Bearer realm="agent-server"')
  if (problem.code === 'upgrade_required') void reply.header('upgrade', 'websocket').header('connection', 'upgrade')
  const retryAfter = problem.status === 503 ? 1 : problem.details?.['retry_after']
  if (typeof retryAfter === 'number') void reply.header('retry-after', retryAfter)
  // Close connections without a valid key: a new handshake for each attempt slows guessing down.
  if (problem.code === 'unauthorized' || problem.code === 'too_many_attempts') void reply.header('connection', 'close')
  // This also applies if a request is refused before any hook has run.
  void reply.header('x-request-id', request.id)
  return reply.code(problem.status).type('application/json').send(JSON.stringify(problem.toBody()))
}

/** Returns the part of an error that clients may see. */
export function problemFor(
  error: unknown,
  request: FastifyRequest,
  redact: (text: string) => string = (text) => text,
): Problem {
  const problem = toProblem(error instanceof Error ? error : new Error(String(error)), request, redact)
  const mayRead = request.access?.allows('read') ?? false
  return redactProblem(mayRead ? problem : withoutContent(problem), redact)
}

/** Leaves out the details that are content of a conversation: a key may be allowed to write, and not to read. */
function withoutContent(problem: Problem): Problem {
  const { code, message, details, cause } = problem
  if (!details || (!('pending' in details) && !('questions' in details))) return problem
  const { pending: _, questions: __, ...others } = details
  return new Problem(code, message, { details: others, cause })
}

function toProblem(error: FastifyError | Error, request: FastifyRequest, redact: (text: string) => string): Problem {
  if (error instanceof Problem) return error
  if (hasZodFastifySchemaValidationErrors(error))
    return invalidRequest(error.validation, error.validationContext, request)
  const refusal = 'code' in error ? FASTIFY_CODES[error.code] : undefined
  if (refusal) return new Problem(...refusal, { cause: error })
  if (isOutOfRoom(error))
    return new Problem('storage_full', 'The disk is full. Free some space and try again.', {
      cause: error,
    })
  if (isStartRefused(error)) {
    request.log.error({ err: error }, 'a process could not be started')
    return new Problem('unavailable', error.message, { cause: error })
  }
  const code = codeOf(error) ?? ''
  if (isOutOfDescriptors(error)) {
    request.log.error({ err: error }, 'there are no file descriptors left')
    const message = `The server has too many files and connections open (${code}). Try again in a moment.`
    return new Problem('unavailable', message, { cause: error })
  }
  if (STORAGE_REFUSALS.has(code)) {
    request.log.error({ err: error }, 'the data directory cannot be used')
    const message = `The server cannot read or write its data (${code}). Check the disk and the permissions, then try again.`
    return new Problem('storage_failed', message, { cause: error })
  }
  const status = 'statusCode' in error ? error.statusCode : undefined
  if (status === 400)
    return new Problem('invalid_request', 'The request could not be parsed. Check that the body is valid JSON.', {
      cause: error,
    })
  const error_id = randomUUID()
  withRedaction(request.log, redact).error({ err: error, error_id }, 'request failed')
  return new Problem('internal', 'The server failed. Its log has the details under this error_id.', {
    details: { error_id },
    cause: error,
  })
}

/** System errors for files that cannot be written, a failing disk, and a network file system or a device that is gone. */
const STORAGE_REFUSALS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'EIO', 'ESTALE', 'ENODEV', 'ENXIO'])

type Refusal = readonly [code: ProblemCode, message: string]

const NOT_JSON: Refusal = ['invalid_request', 'The body is not valid JSON.']
const BAD_URL: Refusal = ['invalid_request', 'The URL cannot be decoded. Check its encoding and its length.']

/** Our messages for the framework's errors: its own may quote a part of the request. */
const FASTIFY_CODES: Readonly<Record<string, Refusal>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'Send the body as JSON, with the header Content-Type: application/json.',
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'The body is larger than OPENHANDS_MAX_BODY_BYTES allows.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: NOT_JSON,
  FST_ERR_CTP_INVALID_JSON_BODY: NOT_JSON,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'invalid_request',
    'The body does not have the length that Content-Length states.',
  ],
  FST_ERR_BAD_URL: BAD_URL,
  FST_ERR_MAX_PARAM_LENGTH: BAD_URL,
}

type Issue = {
  readonly instancePath: string
  readonly message?: string
  readonly keyword: string
  readonly params?: Record<string, unknown>
}

/** Reports paths and rules only: a value could be a secret in the wrong field. */
function invalidRequest(
  validation: readonly Issue[],
  context: 'body' | 'headers' | 'params' | 'querystring' = 'body',
  { routeOptions }: FastifyRequest,
): Problem {
  const schema = routeOptions.schema?.[context]
  const fields = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const issues = validation.slice(0, MAX_ISSUES).map(({ instancePath, keyword, message, params }) => {
    const path = instancePath.split('/').filter(Boolean)
    const issue = { ...params, code: keyword, path, message: message ?? 'is not valid' }
    return describeIssue(issue, [context], fields)
  })
  return new Problem('invalid_request', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), {
    details: { issues },
  })
}

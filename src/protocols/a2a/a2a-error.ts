/** Errors of A2A, in the forms of both bindings: an error of JSON-RPC, and the body of `google.rpc.Status`. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem, ProblemCode } from '../../contract/problem.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { retryAfterOf, sendErrorReply } from '../shared/error-reply.ts'

/** Reasons that the protocol defines: the code of JSON-RPC, the status of HTTP, and its name. */
const REASONS = {
  TASK_NOT_FOUND: [-32_001, 404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [-32_002, 400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [-32_004, 400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32_005, 400, 'INVALID_ARGUMENT'],
  VERSION_NOT_SUPPORTED: [-32_009, 400, 'FAILED_PRECONDITION'],
  PARSE_ERROR: [-32_700, 400, 'INVALID_ARGUMENT'],
  INVALID_REQUEST: [-32_600, 400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [-32_601, 404, 'NOT_FOUND'],
  INVALID_PARAMS: [-32_602, 400, 'INVALID_ARGUMENT'],
  INTERNAL_ERROR: [-32_603, 500, 'INTERNAL'],
} as const
type Reason = keyof typeof REASONS

/** A refusal that other routes do not know. */
export class A2aError extends Error {
  readonly reason: Reason

  constructor(reason: Reason, message: string) {
    super(message)
    this.name = 'A2aError'
    this.reason = reason
  }
}

export const taskNotFound = (): A2aError => new A2aError('TASK_NOT_FOUND', 'There is no such task.')

const BY_CODE: Partial<Record<ProblemCode, Reason>> = {
  invalid_request: 'INVALID_PARAMS',
  invalid_cursor: 'INVALID_PARAMS',
  profile_not_found: 'INVALID_PARAMS',
  callback_address_refused: 'INVALID_PARAMS',
  conversation_not_found: 'TASK_NOT_FOUND',
  conversation_deleted: 'TASK_NOT_FOUND',
  message_not_found: 'TASK_NOT_FOUND',
  callback_not_found: 'TASK_NOT_FOUND',
  internal: 'INTERNAL_ERROR',
}

const DOMAIN = 'a2a-protocol.org'
/** The domain of reasons that the protocol does not define: the codes of this server. */
const OWN_DOMAIN = 'agent-server'
/** JSON-RPC leaves this one to servers, and A2A does not use it. */
const REFUSED = -32_000

const STATUS_NAMES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

export type ErrorForms = {
  readonly status: number
  /** Seconds. */
  readonly retryAfter: number | undefined
  readonly rpc: { readonly code: number; readonly message: string; readonly data: readonly object[] }
  readonly http: object
}

/** Returns what a client may see of an error. `redact` knows the secrets of the conversation. */
export function errorForms(error: unknown, request: FastifyRequest, redact: (text: string) => string): ErrorForms {
  const { reason, domain, code, status, name, message, retryAfter } = partsOf(error, request, redact)
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain,
    ...(retryAfter !== undefined && { metadata: { retry_after: String(retryAfter) } }),
  }
  return {
    status,
    retryAfter,
    rpc: { code, message, data: [info] },
    http: { error: { code: status, status: name, message, details: [info] } },
  }
}

function partsOf(error: unknown, request: FastifyRequest, redact: (text: string) => string) {
  if (error instanceof A2aError) return knownError(error.reason, redact(error.message), undefined)
  const problem = problemFor(error, request, redact)
  const retryAfter = retryAfterOf(problem)
  const { code, message } = problem
  const isUnparsed = code === 'invalid_request' && request.body === undefined && request.method === 'POST'
  const reason = isUnparsed ? 'PARSE_ERROR' : BY_CODE[code]
  return reason ? knownError(reason, message, retryAfter) : otherError(problem, retryAfter)
}

function knownError(reason: Reason, message: string, retryAfter: number | undefined) {
  const [code, status, name] = REASONS[reason]
  return { reason, domain: DOMAIN, code, status, name, message, retryAfter }
}

function otherError({ code, status, message }: Problem, retryAfter: number | undefined) {
  const name = STATUS_NAMES[status] ?? (status < 500 ? 'FAILED_PRECONDITION' : 'INTERNAL')
  return { reason: code.toUpperCase(), domain: OWN_DOMAIN, code: REFUSED, status, name, message, retryAfter }
}

export type RpcId = string | number | null

export const rpcError = ({ rpc }: ErrorForms, id: RpcId): object => ({ jsonrpc: '2.0', id, error: rpc })

/** What is wrong with the transport, or passes: clients and proxies must see it. Other errors of JSON-RPC have the status 200. */
const OF_HTTP: ReadonlySet<number> = new Set([401, 403, 413, 415, 429])

export function sendRpcProblem(forms: ErrorForms, id: RpcId, reply: FastifyReply): FastifyReply {
  const { status, retryAfter } = forms
  const isOfHttp = reply.request.is404 || OF_HTTP.has(status) || status >= 500
  const body = JSON.stringify(rpcError(forms, id))
  return sendErrorReply(reply, { status: isOfHttp ? status : 200, retryAfter, type: 'application/json', body })
}

export function sendHttpProblem({ status, retryAfter, http }: ErrorForms, reply: FastifyReply): FastifyReply {
  return sendErrorReply(reply, { status, retryAfter, type: 'application/json', body: JSON.stringify(http) })
}

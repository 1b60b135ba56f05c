/** The error that every method of the client throws, except when its signal aborts. */
import type { ErrorBody, ProblemCode } from '../../contract/problem.ts'

/**
 * A code of the server, or one of the client. `connection_failed`: there was no response. `unexpected_response`: the
 * response is not one of this API, such as the error page of a proxy. `invalid_argument`: nothing was sent. `server_lost`:
 * the process that ran the server of a data directory has ended.
 */
export type AgentServerErrorCode =
  | ProblemCode
  | 'connection_failed'
  | 'unexpected_response'
  | 'invalid_argument'
  | 'invalid_signature'
  | 'server_lost'

/** Sent by proxies for a server that does not answer. */
const GATEWAY_STATUSES: ReadonlySet<number | undefined> = new Set([502, 503, 504])

export const isGatewayStatus = (status: number | undefined): boolean => GATEWAY_STATUSES.has(status)

type Options = {
  /** The status of the response; absent if there was none. */
  readonly status?: number | undefined
  readonly details?: Record<string, unknown> | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

export class AgentServerError extends Error {
  override readonly name = 'AgentServerError'
  readonly code: AgentServerErrorCode
  /** HTTP status of the response; undefined if there was none. */
  readonly status: number | undefined
  /** Machine-readable details, depending on the code. */
  readonly details: Record<string, unknown> | undefined
  /** The time after which the server wants the request to be repeated, in milliseconds. */
  readonly retryAfterMs: number | undefined

  /** `message` says what happened and what to do. */
  constructor(code: AgentServerErrorCode, message: string, options: Options = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.status = options.status
    this.details = options.details
    this.retryAfterMs = options.retryAfterMs
  }

  static fromBody({ error, message, details }: ErrorBody, options: Options = {}): AgentServerError {
    return new AgentServerError(error, message, { ...options, details })
  }
}

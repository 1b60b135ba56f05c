/** Errors of the server in the form of the protocol, which is the same in both versions. */
import { RequestError } from '@agentclientprotocol/sdk'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import { MissingSetting } from '../shared/program-host.ts'

export const INTERNAL_ERROR = -32_603
const AUTH_REQUIRED = -32_000
const RESOURCE_NOT_FOUND = -32_002
const INVALID_PARAMS = -32_602
/** Statuses of requests whose values are wrong, or too large. */
const OF_PARAMS: ReadonlySet<number | undefined> = new Set([400, 413, 414, 422, 431])

export async function withOwnErrors<T>(promise: PromiseLike<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw requestErrorOf(error)
  }
}

function requestErrorOf(error: unknown): unknown {
  if (error instanceof RequestError || !(error instanceof Error)) return error
  if (error instanceof MissingSetting) return new RequestError(AUTH_REQUIRED, error.message)
  return error instanceof AgentServerError ? errorOfServer(error) : new RequestError(INTERNAL_ERROR, error.message)
}

export function errorOfServer(error: AgentServerError): RequestError {
  const { code, status, message, retryAfterMs } = error
  const data = { code, ...(retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1000) }) }
  // A hook that refuses a prompt has the status 403, too.
  if (status === 401 || code === 'forbidden') return new RequestError(AUTH_REQUIRED, message, data)
  if (status === 404 || status === 410) return new RequestError(RESOURCE_NOT_FOUND, message, data)
  return new RequestError(OF_PARAMS.has(status) ? INVALID_PARAMS : INTERNAL_ERROR, message, data)
}

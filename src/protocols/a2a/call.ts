/** A call of an operation, whatever the binding it comes by. */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'

export type A2aDeps = GatewayDeps & {
  readonly version: string
  /** The URL of the server; undefined: that of the request. */
  readonly publicUrl: string | undefined
}

export type A2aCall = {
  readonly deps: A2aDeps
  readonly request: FastifyRequest
  readonly access: Access
  /** The other binding has them in the path, the query and the body. */
  readonly params: unknown
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
}

export const callOf = (
  deps: A2aDeps,
  request: FastifyRequest,
  { params, signal }: Pick<A2aCall, 'params' | 'signal'>,
): A2aCall => ({ deps, request, access: accessOf(request), params, signal })

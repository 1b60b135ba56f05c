/** The `Idempotency-Key` header of a request, with the hash of the body it came with. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { IdempotencyKey } from '../contract/conversation.ts'
import type { Idempotency, Keyed } from '../conversations/idempotency/idempotency.ts'
import type { HashBody } from '../security/body-hash.ts'

declare module 'fastify' {
  interface FastifyInstance {
    hashBody: HashBody
  }
}

/** For the schema of a route that takes a key. */
export const KeyHeader = z.object({ 'idempotency-key': IdempotencyKey.optional() })

/** Undefined without the header. `asked` is all that makes the request what it is, beside its route. */
export function idempotencyOf(request: FastifyRequest, asked: unknown = request.body): Idempotency | undefined {
  return keyOf(request)?.with(asked)
}

/** For a body that is known only when it has come in. Undefined without the header. */
export function keyOf(request: FastifyRequest): Keyed | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = IdempotencyKey.parse(header)
  return { key, with: (body) => ({ key, ...request.server.hashBody(routeOf(request), body) }) }
}

const routeOf = ({ method, routeOptions }: FastifyRequest) => `${method} ${routeOptions.url}`

/** For what comes over a socket: the same key is the same request, whichever way it came. `route` is the one that does it. */
export function idempotencyIn(request: FastifyRequest, key: string | undefined, route: string, body: unknown) {
  return key === undefined ? undefined : { key, ...request.server.hashBody(route, body) }
}

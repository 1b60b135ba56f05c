/** The `Idempotency-Key` header of a request, with the hash of the body it came with. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Idempotency, Keyed } from '../conversations/idempotency.ts'
import type { HashBody } from '../security/body-hash.ts'

declare module 'fastify' {
  interface FastifyInstance {
    hashBody: HashBody
  }
}

const Key = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'has 1 to 255 visible ASCII characters')
  .describe('Send the same again, after a lost answer, to get that answer: for a day, the request is carried out once.')

/** For the schema of a route that takes a key. */
export const KeyHeader = z.object({ 'idempotency-key': Key.optional() })

/** Undefined without the header. */
export function idempotencyOf(request: FastifyRequest): Idempotency | undefined {
  return keyOf(request)?.with(request.body)
}

/** For a body that is known only when it has come in, or that is not all the request says. Undefined without the header. */
export function keyOf(request: FastifyRequest): Keyed | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = Key.parse(header)
  return { key, with: (body) => ({ key, ...request.server.hashBody(routeOf(request), body) }) }
}

const routeOf = ({ method, routeOptions }: FastifyRequest) => `${method} ${routeOptions.url}`

/** The `Idempotency-Key` header of a request, with the hash of the body it came with. */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../contract/problem.ts'
import type { Idempotency } from '../conversations/idempotency.ts'
import { hashBody } from '../conversations/idempotency.ts'

/** Undefined without the header. */
export function idempotencyOf(request: FastifyRequest): Idempotency | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = String(header)
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new Problem('invalid_request', 'An Idempotency-Key has 1 to 255 visible ASCII characters.')
  }
  return { key, bodyHash: hashBody(request.body) }
}

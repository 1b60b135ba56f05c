/** Reads the `Idempotency-Key` header of a request and hashes its body. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { IdempotencyKey } from '../../contract/conversation.ts'
import type { PostMessage } from '../../contract/run.ts'
import { messageOf, partsOf } from '../../contract/values/message.ts'
import type { Idempotency, IdempotencyDraft } from '../../state/idempotency.ts'
import type { HashBody } from '../../security/body-hash.ts'

declare module 'fastify' {
  interface FastifyInstance {
    hashBody: HashBody
  }
}

/** The header in the schema of a route that accepts a key. */
export const KeyHeader = z.object({ 'idempotency-key': IdempotencyKey.optional() })

/** Returns undefined without the header. `asked` is everything that identifies the request, except its route. */
export function idempotencyOf(request: FastifyRequest, body: unknown = request.body): Idempotency | undefined {
  return keyOf(request)?.with(body)
}

/** Returns the key for a body that is known only after it has arrived. Returns undefined without the header. */
export function keyOf(request: FastifyRequest): IdempotencyDraft | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = IdempotencyKey.parse(header)
  return { key, with: (body) => ({ key, ...request.server.hashBody(routeOf(request), body) }) }
}

const MESSAGES = 'POST /conversations/:id/messages'

/** What identifies a message: with the id of a client, only the message counts, in whichever form it was sent. */
function identityOf(body: PostMessage): unknown {
  if (body.client_message_id === undefined) return body
  const { content, sender = null } = messageOf(body.message)
  return { client_message_id: body.client_message_id, content: partsOf(content), sender }
}

/** Returns the id that a client gave a message, and its `Idempotency-Key`; undefined without them. */
export function messageMarksOf({ server }: FastifyRequest, body: PostMessage, key: string | undefined) {
  const { client_message_id: id } = body
  if (id === undefined && key === undefined) return {}
  const hashes = server.hashBody(MESSAGES, identityOf(body))
  return {
    idempotency: key === undefined ? undefined : { key, ...hashes },
    clientMessage: id === undefined ? undefined : { id, ...hashes },
  }
}

const routeOf = ({ method, routeOptions }: FastifyRequest) => `${method} ${routeOptions.url}`

/**
 * Makes the key of a request over a WebSocket: the same key identifies the same request on both transports. `route` is
 * the equivalent route.
 */
export function idempotencyIn(request: FastifyRequest, key: string | undefined, route: string, body: unknown) {
  return key === undefined ? undefined : { key, ...request.server.hashBody(route, body) }
}

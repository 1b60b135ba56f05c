/** Finds the conversation that a request is about. The only file that finds it in a request. */
import type { FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Returns the conversation of a path outside of `/conversations`. */
    conversationOf?: (params: unknown) => string | undefined
    /** Returns the conversation that the body or a header names; undefined: the request makes one. */
    conversationInBody?: (body: unknown, request: FastifyRequest) => string | undefined | Promise<string | undefined>
    /** The route makes conversations: what is before the `Idempotency-Key` in the key by which they are found. */
    creationPrefix?: string
  }
  interface FastifyRequest {
    /** The conversation that the handler has found or made, if the path names none. */
    conversationId: string | undefined
  }
}

/** The conversation in the path of the request; undefined for routes of none. */
export function namedConversation({ params, routeOptions: { url, config } }: FastifyRequest): string | undefined {
  if (config.conversationOf) return config.conversationOf(params)
  const { id } = (params ?? {}) as { id?: string } // a parameter of a route is a string
  return url?.startsWith('/conversations/:id') ? id?.toLowerCase() : undefined
}

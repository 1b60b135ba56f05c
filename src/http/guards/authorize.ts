/**
 * Authorization: which credential may call which route, and which conversations exist for it. The only file that decides
 * about both. A conversation that a key does not see is answered as one that there never was, before anything is looked up
 * on disk, so that neither the answer nor its time says which it is.
 */
import type { FastifyInstance } from 'fastify'
import type { Access, Owned } from '../../access/access.ts'
import type { Scope } from '../../contract/key.ts'
import { Problem } from '../../contract/problem.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a key needs to call it. Each route has one, unless it is public. */
    scope?: Scope
  }
  interface FastifyRequest {
    /** What its credential may do. Set when the key was checked. */
    access: Access
  }
}

export type Authorize = {
  /** Throws `forbidden` without the scope, and `conversation_not_found` for a conversation that the key does not see. */
  readonly route: (access: Access, scope: Scope, params: { readonly id?: string | undefined }) => void
  /** Throws `conversation_not_found`. */
  readonly conversation: (access: Access, id: string) => void
}

/** `ownerOf`: undefined for a conversation that there is not. */
export function createAuthorize(ownerOf: (id: string) => Owned | undefined): Authorize {
  const conversation = (access: Access, id: string) => {
    const owned = ownerOf(id.toLowerCase())
    // Without limits, the lookup that follows says more: that it was deleted, or is damaged.
    if (access.isLimited && !(owned && access.sees(owned)))
      throw new Problem('conversation_not_found', `There is no conversation ${id.toLowerCase()}.`)
  }
  return {
    route(access, scope, { id }) {
      access.require(scope)
      if (id !== undefined) conversation(access, id)
    },
    conversation,
  }
}

/** Throws at start: a route that nobody thought about would be open to each key. */
export function requireScopes(app: FastifyInstance): void {
  app.addHook('onRoute', ({ method, url, config }) => {
    if (!config?.public && config?.scope === undefined)
      throw new Error(`${[method].flat().join()} ${url} has no scope. Add config.scope.`)
  })
}

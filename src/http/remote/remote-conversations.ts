/** Finds conversations that another instance owns, for the routes whose clients stay connected when the owner ends. */
import type { FastifyRequest } from 'fastify'
import type { RemoteDeps } from './remote-conversation.ts'
import { RemoteConversation } from './remote-conversation.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * True if the request is not forwarded: its handler asks the owner itself, so that the client stays connected when
     * the owner ends.
     */
    outlivesOwner?: true
  }
  interface FastifyRequest {
    /** Set for such a route when another instance owns the conversation, which then checks the rights of the client. */
    remote: RemoteConversation | undefined
    /**
     * Set for such a route where several instances share a database: looks again, because an instance that stops may have left
     * the conversation since. Rejects with `reason` if it is here.
     */
    elsewhere: ((reason: unknown) => Promise<RemoteConversation>) | undefined
  }
}

export class RemoteConversations implements Disposable {
  readonly #deps: Omit<RemoteDeps, 'stopping'>
  readonly #stopping = new AbortController()

  constructor(deps: Omit<RemoteDeps, 'stopping'>) {
    this.#deps = deps
  }

  /**
   * Returns undefined if this instance has the conversation, or nobody, and for a request whose key was not checked. Throws
   * `forbidden` without the scopes of the route.
   */
  async find(request: FastifyRequest, id: string): Promise<RemoteConversation | undefined> {
    const { access, keyFingerprint: fingerprint = '' } = request
    const owner = access && (await this.#deps.cluster.ownerElsewhere(request.raw.socket, id))
    // The owner checks all rights. But the request may find no other owner any more, and is executed here then.
    if (owner) access.require(...(request.routeOptions.config.scopes ?? ['admin']))
    const deps = { ...this.#deps, stopping: this.#stopping.signal }
    return owner && new RemoteConversation(deps, request, id, { fingerprint, access: access.within(id) })
  }

  /** Returns the function `request.elsewhere`. */
  elsewhere(request: FastifyRequest, id: string): NonNullable<FastifyRequest['elsewhere']> {
    return async (reason) => {
      const conversation = await this.find(request, id)
      if (!conversation) throw reason
      return conversation
    }
  }

  /** Ends the streams: their clients reconnect to another instance. */
  [Symbol.dispose](): void {
    this.#stopping.abort()
  }
}

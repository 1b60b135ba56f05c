/**
 * Authorizations that users were asked for and have not given yet, over all conversations. Each is bound to its state,
 * which nobody can guess, and is valid once and for a limited time. Not stored: after a restart the next run asks again.
 */
import { randomBytes } from 'node:crypto'
import type { OAuthDiscoveryState } from '@modelcontextprotocol/client'

const AUTHORIZATION_MS = 10 * 60_000
const STATE_BYTES = 32

/** Nobody can guess it. It names the conversation, because any instance may get the browser that is sent back. */
export const createState = (conversationId: string): string =>
  `${randomBytes(STATE_BYTES).toString('base64url')}.${conversationId}`

/** Returns the conversation that a state names; undefined for anything else. */
export const conversationOfState = (state: string): string | undefined =>
  /^[\w-]+\.([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/.exec(state)?.[1]

/** The limit over all conversations; the oldest make room. */
const MAX_PENDING = 2000

export type PendingAuthorization = {
  readonly conversationId: string
  readonly server: string
  /** The address of the server then: the code is not used for another one. */
  readonly url: string
  readonly state: string
  readonly verifier: string
  readonly redirectUrl: string
  /** The authorization server that the user was sent to. */
  readonly discovery: OAuthDiscoveryState
  /** A time of the monotonic clock, in milliseconds. */
  readonly expiresAt: number
}

export class PendingAuthorizations {
  readonly #byState = new Map<string, PendingAuthorization>()

  /** Replaces the former one of this server. */
  add(pending: Omit<PendingAuthorization, 'expiresAt'>): PendingAuthorization {
    const now = performance.now()
    for (const { state, conversationId, server, expiresAt } of this.#byState.values())
      if (expiresAt < now || (conversationId === pending.conversationId && server === pending.server))
        this.#byState.delete(state)
    for (const state of this.#byState.keys()) {
      if (this.#byState.size < MAX_PENDING) break
      this.#byState.delete(state)
    }
    const authorization = { ...pending, expiresAt: now + AUTHORIZATION_MS }
    this.#byState.set(pending.state, authorization)
    return authorization
  }

  /** Returns it once, and only if `isMeant` accepts it. */
  take(
    state: string,
    isMeant: (pending: PendingAuthorization) => boolean = () => true,
  ): PendingAuthorization | undefined {
    const pending = this.#byState.get(state)
    if (!pending || !isMeant(pending)) return undefined
    this.#byState.delete(state)
    return pending.expiresAt < performance.now() ? undefined : pending
  }
}

/**
 * The permissions of a request's credential: its scopes, and the conversations it can see. Pure decisions without
 * lookups.
 */
import type { Scope } from '../contract/key.ts'
import { Problem } from '../contract/problem.ts'

export type AccessLimits = {
  readonly conversations?: ReadonlySet<string> | undefined
  readonly userId?: string | undefined
  /** The names of profiles. */
  readonly profiles?: ReadonlySet<string> | undefined
}

/** The fields of a conversation that decide whether a key can see it. */
export type OwnedConversation = {
  readonly id: string
  readonly userId: string | undefined
  /** The profile that it was made from. */
  readonly profile?: string | undefined
}

/** Identifies the credential in the audit log. */
export type KeyName = { readonly id: string; readonly name: string }

export class Access {
  /** Undefined for the master key. */
  readonly key: KeyName | undefined
  readonly #scopes: ReadonlySet<Scope>
  readonly limits: AccessLimits
  /** Aborted when the credential is revoked or expires: its streams end then. */
  readonly ended: AbortSignal
  /** The login through which the key is used; undefined if the request has the key itself. */
  readonly loginId: string | undefined

  constructor(
    key: KeyName | undefined,
    scopes: Iterable<Scope>,
    limits: AccessLimits,
    endSignal: AbortSignal,
    loginId?: string,
  ) {
    this.key = key
    this.#scopes = new Set(scopes)
    this.limits = limits
    this.ended = endSignal
    this.loginId = loginId
  }

  static master(): Access {
    return new Access(undefined, ['admin'], {}, new AbortController().signal)
  }

  get scopes(): readonly Scope[] {
    return [...this.#scopes]
  }

  get isLimited(): boolean {
    const { conversations, userId, profiles } = this.limits
    return conversations !== undefined || userId !== undefined || profiles !== undefined
  }

  allows(scope: Scope): boolean {
    return this.#scopes.has(scope) || this.#scopes.has('admin')
  }

  /** Throws `forbidden`. */
  require(...scopes: readonly Scope[]): void {
    const missing = scopes.filter((scope) => !this.allows(scope))
    if (missing.length === 0) return
    throw new Problem('forbidden', `This key lacks the scope ${missing.join(', ')}. Use a key that has it.`, {
      details: { missing_scopes: missing },
    })
  }

  /** Call it before a response that a request has waited for. Throws `unauthorized` if the key has ended meanwhile. */
  requireValid(): void {
    if (this.ended.aborted) throw keyEnded()
  }

  sees({ id, userId, profile }: OwnedConversation): boolean {
    const { conversations, userId: own, profiles } = this.limits
    return (
      (conversations === undefined || conversations.has(id)) &&
      (own === undefined || userId === own) &&
      (profiles === undefined || (profile !== undefined && profiles.has(profile)))
    )
  }

  /** Returns the permissions for requests of this conversation alone, which are the same, however many others it can see. */
  within(conversationId: string): Access {
    const { conversations } = this.limits
    const seenIds = conversations && new Set(conversations.has(conversationId) ? [conversationId] : [])
    return new Access(this.key, this.#scopes, { ...this.limits, conversations: seenIds }, this.ended, this.loginId)
  }

  /** Returns the same credential with fewer permissions, for a stream ticket. */
  narrowedTo(scopes: readonly Scope[], conversationId: string | undefined): Access {
    const conversations = conversationId === undefined ? this.limits.conversations : new Set([conversationId])
    return new Access(this.key, scopes, { ...this.limits, conversations }, this.ended, this.loginId)
  }

  /** Returns the permissions of a login: none that the key lacks. */
  forLogin(id: string, scopes: readonly Scope[], endSignal: AbortSignal): Access {
    const allowedScopes = scopes.filter((scope) => this.allows(scope))
    return new Access(this.key, allowedScopes, this.limits, endSignal, id)
  }
}

export const keyEnded = (): Problem =>
  new Problem('unauthorized', 'The key was revoked or has expired. Send another one.')

/**
 * Stream tickets: credentials for one stream or one download, for browsers, which cannot send a header with
 * `EventSource`, `WebSocket` or a link. They are part of URLs, which end up in logs and histories: so a ticket works once, and
 * only for a short time. Kept in memory only: after a restart clients request new ones. Several instances use `SharedTickets`
 * instead.
 */
import type { CreateStreamTicket, Scope, StreamTicket } from '../contract/key.ts'
import { Problem } from '../contract/problem.ts'
import type { Access } from './access.ts'
import { hashCredential, makeCredential } from './credential.ts'

/** Issues and redeems tickets. `redeem` throws `unauthorized`. */
export type Tickets = {
  issue(access: Access, wanted: CreateStreamTicket): StreamTicket | Promise<StreamTicket>
  redeem(ticket: string, target: TicketTarget): Access | Promise<Access>
}

export const TICKET_LIFETIME_MS = 30_000
/** Maximum number of unused tickets of one key; above it its oldest is removed. */
export const MAX_TICKETS_PER_KEY = 1000

/** What a ticket is for. */
export type TicketTarget = {
  /** Undefined: the firehose. */
  readonly conversationId: string | undefined
  /** The path of a file to download. Undefined: a stream. */
  readonly file?: string | undefined
}

type IssuedTicket = TicketTarget & {
  readonly access: Access
  readonly expiresAt: number
}

export const holderOf = ({ key }: Access): string => key?.id ?? 'master key'

/** What a ticket allows: of a download, only that. */
export const scopesOf = ({ scopes, file }: Pick<CreateStreamTicket, 'scopes' | 'file'>): Scope[] =>
  file === undefined ? scopes : ['files']

export const invalidTicket = (): Problem =>
  new Problem(
    'unauthorized',
    'The ticket is not valid: it was used, has expired, or is for another stream or file. Get a new one with POST /stream-tickets.',
  )

export class StreamTickets implements Tickets {
  /** The tickets by hash, oldest first. */
  readonly #issued = new Map<string, IssuedTicket>()
  /** The hashes of the tickets of each key, oldest first. */
  readonly #byHolder = new Map<string, Set<string>>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  issue(access: Access, { conversation_id, scopes, file }: CreateStreamTicket): StreamTicket {
    const ticket = makeCredential('ast_')
    const expiresAt = this.#now() + TICKET_LIFETIME_MS
    this.#forgetExpired()
    const narrowedAccess = access.narrowedTo(scopesOf({ scopes, file }), conversation_id)
    this.#add(hashCredential(ticket), { access: narrowedAccess, conversationId: conversation_id, file, expiresAt })
    return { ticket, expires_at: new Date(expiresAt).toISOString() }
  }

  /** Uses the ticket up. Throws `unauthorized` for a ticket that is used, expired, or for something else. */
  redeem(ticket: string, { conversationId, file }: TicketTarget): Access {
    const hash = hashCredential(ticket)
    const issuedTicket = this.#issued.get(hash)
    if (issuedTicket) this.#remove(hash, issuedTicket)
    const isValid = issuedTicket && issuedTicket.expiresAt > this.#now() && !issuedTicket.access.ended.aborted
    const isForTarget = issuedTicket?.conversationId === conversationId && issuedTicket?.file === file
    if (isValid && isForTarget) return issuedTicket.access
    throw invalidTicket()
  }

  #forgetExpired(): void {
    const now = this.#now()
    for (const [hash, issuedTicket] of this.#issued) {
      if (issuedTicket.expiresAt > now) return
      this.#remove(hash, issuedTicket)
    }
  }

  #add(hash: string, issuedTicket: IssuedTicket): void {
    const holder = holderOf(issuedTicket.access)
    const own = this.#byHolder.get(holder) ?? new Set()
    const [oldest] = own
    const evictedTicket = oldest !== undefined && own.size >= MAX_TICKETS_PER_KEY ? this.#issued.get(oldest) : undefined
    if (oldest !== undefined && evictedTicket) this.#remove(oldest, evictedTicket)
    this.#byHolder.set(holder, own.add(hash))
    this.#issued.set(hash, issuedTicket)
  }

  #remove(hash: string, { access }: IssuedTicket): void {
    const holder = holderOf(access)
    const own = this.#byHolder.get(holder)
    own?.delete(hash)
    if (own?.size === 0) this.#byHolder.delete(holder)
    this.#issued.delete(hash)
  }
}

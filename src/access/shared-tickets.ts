/**
 * Stream tickets where several instances share a database: one that any of them has issued opens a stream, or a download,
 * at any other one. Loaded by these instances only.
 */
import { z } from 'zod'
import type { CreateStreamTicket, StreamTicket } from '../contract/key.ts'
import { Scope } from '../contract/key.ts'
import type { TicketTable } from '../storage/instances.ts'
import { Access, keyEnded } from './access.ts'
import type { ApiKeys } from './api-keys.ts'
import { hashCredential, makeCredential } from './credential.ts'
import type { Logins } from './logins.ts'
import type { Tickets, TicketTarget } from './stream-tickets.ts'
import { MAX_TICKETS_PER_KEY, TICKET_LIFETIME_MS, holderOf, invalidTicket, scopesOf } from './stream-tickets.ts'

/** The credential of a ticket, as each instance finds it. */
const TicketCredential = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('master') }),
  z.object({ kind: z.literal('api_key'), hash: z.string() }),
  z.object({ kind: z.literal('login'), id: z.string() }),
])
type TicketCredential = z.infer<typeof TicketCredential>

const IssuedTicket = z.object({
  credential: TicketCredential,
  scopes: z.array(Scope),
  /** Undefined: the firehose. */
  conversationId: z.string().optional(),
  /** Undefined: a stream. */
  file: z.string().optional(),
})

export type SharedTicketsDeps = {
  readonly table: TicketTable
  readonly apiKeys: Pick<ApiKeys, 'findHashed' | 'hashOf'>
  readonly logins: { readonly open: () => Promise<Pick<Logins, 'findById'>> }
}

export class SharedTickets implements Tickets {
  readonly #deps: SharedTicketsDeps

  constructor(deps: SharedTicketsDeps) {
    this.#deps = deps
  }

  async issue(
    access: Access,
    { conversation_id: conversationId, scopes, file }: CreateStreamTicket,
  ): Promise<StreamTicket> {
    const credential = this.#credentialOf(access)
    const ticket = makeCredential('ast_')
    const issuedTicket: z.infer<typeof IssuedTicket> = {
      credential,
      scopes: scopesOf({ scopes, file }),
      conversationId,
      file,
    }
    await this.#deps.table.add(
      { hash: hashCredential(ticket), holder: holderOf(access), value: JSON.stringify(issuedTicket) },
      { lifetimeMs: TICKET_LIFETIME_MS, mostOfHolder: MAX_TICKETS_PER_KEY },
    )
    return { ticket, expires_at: new Date(Date.now() + TICKET_LIFETIME_MS).toISOString() }
  }

  async redeem(ticket: string, { conversationId, file }: TicketTarget): Promise<Access> {
    const value = await this.#deps.table.take(hashCredential(ticket))
    const issuedTicket = value === undefined ? undefined : IssuedTicket.parse(JSON.parse(value))
    if (!issuedTicket || issuedTicket.conversationId !== conversationId || issuedTicket.file !== file)
      throw invalidTicket()
    const access = await this.#accessOf(issuedTicket.credential)
    if (!access || access.ended.aborted) throw invalidTicket()
    return access.narrowedTo(issuedTicket.scopes, conversationId)
  }

  /** Throws `unauthorized` if the key has ended meanwhile. */
  #credentialOf(access: Access): TicketCredential {
    if (access.loginId !== undefined) return { kind: 'login', id: access.loginId }
    if (!access.key) return { kind: 'master' }
    const hash = this.#deps.apiKeys.hashOf(access)
    if (hash === undefined) throw keyEnded()
    return { kind: 'api_key', hash }
  }

  async #accessOf(credential: TicketCredential): Promise<Access | undefined> {
    const { apiKeys, logins } = this.#deps
    if (credential.kind === 'login') return await (await logins.open()).findById(credential.id)
    return credential.kind === 'master' ? Access.master() : await apiKeys.findHashed(credential.hash)
  }
}

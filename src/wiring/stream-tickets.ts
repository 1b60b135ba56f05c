/** Opens the stream tickets: in memory, or in the database where several instances share it. */
import type { Tickets } from '../access/stream-tickets.ts'
import { StreamTickets } from '../access/stream-tickets.ts'
import type { Services } from './services.ts'

export async function openTickets({ storage, apiKeys, logins }: Services): Promise<Tickets> {
  if (!storage.tickets) return new StreamTickets()
  const { SharedTickets } = await import('../access/shared-tickets.ts')
  return new SharedTickets({ table: storage.tickets, apiKeys, logins })
}

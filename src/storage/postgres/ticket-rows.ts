/** The stream tickets of all instances. Only the clock of the database decides when one has expired. */
import { randomUUID } from 'node:crypto'
import type { TicketTable } from '../instances.ts'
import type { PostgresDatabase } from './database.ts'

export class TicketRows implements TicketTable {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async add(...[{ hash, holder, value }, { lifetimeMs, mostOfHolder }]: Parameters<TicketTable['add']>): Promise<void> {
    await this.#database.write(ADD, [hash, holder, value, lifetimeMs, mostOfHolder])
  }

  async take(hash: string): Promise<string | undefined> {
    const [row] = await this.#database.write(TAKE, [hash, randomUUID()])
    return row && String(row['value'])
  }
}

// Two expired ones leave for each that comes.
const ADD = `
  with expired as (
    delete from stream_tickets where hash in (
      select hash from stream_tickets where expires_at < now() order by expires_at limit 2)
  ), evicted as (
    delete from stream_tickets where hash in (
      select hash from stream_tickets where holder = $2 and taken_by is null and hash <> $1
      order by number desc offset $5::integer - 1)
  )
  insert into stream_tickets (hash, holder, value, expires_at)
  values ($1, $2, $3, now() + $4::integer * interval '1 millisecond')
  on conflict do nothing`
// A repeated statement finds what it has taken.
const TAKE = `
  update stream_tickets set taken_by = $2
  where hash = $1 and expires_at > now() and (taken_by is null or taken_by = $2)
  returning value`

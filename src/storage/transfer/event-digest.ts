/** A hash over the events of a conversation, which files and databases compute in the same way. */
import { createHash } from 'node:crypto'
import type { PostgresDatabase } from '../postgres/database.ts'

/** `hash`: SHA-256 over the SHA-256 of each event's JSON, in hexadecimal. */
export type LogDigest = { readonly count: number; readonly hash: string }

export const isSame = (one: LogDigest, other: LogDigest): boolean =>
  one.count === other.count && one.hash === other.hash

export class EventDigest {
  readonly #hash = createHash('sha256')
  #count = 0

  add(json: string): void {
    this.#hash.update(createHash('sha256').update(json).digest())
    this.#count += 1
  }

  /** The digest of what was added so far. */
  get value(): LogDigest {
    return { count: this.#count, hash: this.#hash.copy().digest('hex') }
  }
}

/** Returns the digest of what is stored; that of no events if the conversation does not exist. */
export async function digestOfRows(database: PostgresDatabase, id: string): Promise<LogDigest> {
  const [row] = await database.read(DIGEST, [id])
  return { count: Number(row?.['count']), hash: String(row?.['hash']) }
}

const DIGEST = `
  select count(*) as count, encode(sha256(
    coalesce(string_agg(sha256(convert_to(json, 'UTF8')), ''::bytea order by seq), ''::bytea)
  ), 'hex') as hash
  from events where conversation_id = $1`

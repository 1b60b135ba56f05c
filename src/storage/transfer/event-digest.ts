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

/** Events whose hashes one statement returns: it must end in time, however long the log is. */
const HASHES = 50_000

/** Returns the digest of what is stored; that of no events if the conversation does not exist. */
export async function digestOfRows(database: PostgresDatabase, id: string): Promise<LogDigest> {
  const hash = createHash('sha256')
  let count = 0
  for (let last: unknown = 0; last !== null;) {
    const [row] = await database.read(HASHES_AFTER, [id, last, HASHES])
    if (Buffer.isBuffer(row?.['hashes'])) hash.update(row['hashes'])
    count += Number(row?.['count'])
    last = row?.['last'] ?? null
  }
  return { count, hash: hash.digest('hex') }
}

const HASHES_AFTER = `
  select count(*) as count, max(seq) as last,
    string_agg(sha256(convert_to(json, 'UTF8')), ''::bytea order by seq) as hashes
  from (select seq, json from events where conversation_id = $1 and seq > $2 order by seq limit $3) part`

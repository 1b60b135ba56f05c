/** The idempotency keys of creates at all instances. Each claims a key before it creates anything. */
import type { ClaimedKey, Peer } from '../instances.ts'
import type { RowOwnership } from './ownership.ts'

export type KeyClaim = { readonly key: string; readonly bodyHash: string; readonly id: string }

/** Resolves to undefined if the key belongs to this request now, and otherwise to the earlier one. */
export async function claimKey(
  { database, incarnation }: RowOwnership,
  { key, bodyHash, id }: KeyClaim,
): Promise<ClaimedKey | undefined> {
  for (;;) {
    if ((await database.write(CLAIM, [key, bodyHash, id, incarnation])).length > 0) return undefined
    const [row] = await database.read(FIND, [key, incarnation])
    // It was released since.
    if (!row) continue
    return {
      key,
      bodyHash: String(row['body_hash']),
      id: String(row['conversation_id']),
      at: new Date(Number(row['at'])).toISOString(),
      isMade: row['is_made'] === true,
      isElsewhere: row['is_elsewhere'] === true,
    }
  }
}

/** Releases the key of a request that has failed. */
export async function releaseKey({ database }: RowOwnership, { key, id }: Pick<KeyClaim, 'key' | 'id'>): Promise<void> {
  await database.write(RELEASE, [key, id])
}

/** Releases the key of a request whose conversation was deleted. */
export async function freeKey({ database }: RowOwnership, { key, id }: Pick<KeyClaim, 'key' | 'id'>): Promise<void> {
  await database.write(FREE, [key, id])
}

export async function ownerOfKey({ database }: RowOwnership, key: string): Promise<Peer | undefined> {
  const [row] = await database.read(OWNER, [key])
  return row && { instance: Number(row['id']), address: String(row['address']) }
}

const IS_MADE = `(
  exists (select from conversations c where c.id = k.conversation_id and c.has_log and c.head > 0)
  or exists (select from deletions d where d.conversation_id = k.conversation_id))`
// A repeated statement finds its own row. Two old ones leave for each that comes.
const CLAIM = `
  with removed as (
    delete from creation_claims where key in (
      select key from creation_claims where at < now() - interval '1 day' and key <> $1 order by at limit 2)
  )
  insert into creation_claims as k (key, body_hash, conversation_id, owner) values ($1, $2, $3, $4)
  on conflict (key) do update set body_hash = $2, conversation_id = $3, owner = $4, at = now()
  where k.conversation_id = $3 or k.at < now() - interval '1 day' or (has_ended(k.owner) and not ${IS_MADE})
  returning key`
const FIND = `
  select body_hash, conversation_id, (extract(epoch from at) * 1000)::bigint as at, ${IS_MADE} as is_made,
    exists (
      select from conversations c where c.id = k.conversation_id and c.owner <> $2 and not has_ended(c.owner)
    ) as is_elsewhere
  from creation_claims k where key = $1`
const RELEASE = `delete from creation_claims k where key = $1 and conversation_id = $2 and not ${IS_MADE}`
const FREE = 'delete from creation_claims where key = $1 and conversation_id = $2'
const OWNER = `
  select i.id, i.address from creation_claims k
  left join conversations c on c.id = k.conversation_id and c.has_log
  join incarnations i on i.id = coalesce(c.owner, k.owner)
  where k.key = $1 and k.at > now() - interval '1 day'
    and i.ended_at is null and i.address is not null`

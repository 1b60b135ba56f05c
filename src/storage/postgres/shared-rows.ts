/** What instances that share the database show of the conversations of each other. */
import type { Changes, ClaimedKey, ListedConversation, SharedConversations } from '../instances.ts'
import type { Summary } from '../summary.ts'
import { SUMMARY_FORMAT } from './caches.ts'
import type { KeyClaim } from './creation-claims.ts'
import { claimKey, freeKey, releaseKey } from './creation-claims.ts'
import { isUuid } from './is-uuid.ts'
import type { RowOwnership } from './ownership.ts'
import type { PostgresRow } from './session.ts'

/** Conversations that are read in one part. */
const PART = 500

export class SharedRows implements SharedConversations {
  readonly #ownership: RowOwnership

  constructor(ownership: RowOwnership) {
    this.#ownership = ownership
  }

  claimKey(claim: KeyClaim): Promise<ClaimedKey | undefined> {
    return claimKey(this.#ownership, claim)
  }

  releaseKey(claim: Pick<KeyClaim, 'key' | 'id'>): Promise<void> {
    return releaseKey(this.#ownership, claim)
  }

  freeKey(claim: Pick<KeyClaim, 'key' | 'id'>): Promise<void> {
    return freeKey(this.#ownership, claim)
  }

  async position(): Promise<number> {
    const [row] = await this.#ownership.database.read('select firehose_horizon() as reached')
    return Number(row?.['reached'])
  }

  async changes(after: number): Promise<Changes> {
    const { database, incarnation } = this.#ownership
    const [first, ...rows] = await database.read('select * from changes_since($1, $2)', [after, incarnation])
    return {
      position: Number(first?.['reached']),
      changed: rows.filter((row) => row['is_deleted'] !== true).map(listedOf),
      deleted: rows.filter((row) => row['is_deleted'] === true).map(({ id }) => String(id)),
    }
  }

  async listed(id: string): Promise<ListedConversation | undefined> {
    const [row] = isUuid(id) ? await this.#ownership.database.read(LISTED, [id]) : []
    return row && listedOf(row)
  }

  async *all(): AsyncGenerator<ListedConversation[]> {
    let last: Pick<NotedRow, 'id' | 'created'> = { created: '-infinity', id: NIL }
    for (;;) {
      const [row] = await this.#ownership.database.read(ALL, [last.created, last.id, SUMMARY_FORMAT, PART])
      const part = row?.['part']
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by the statement
      const notedRows = typeof part === 'string' ? (JSON.parse(part) as NotedRow[]) : []
      yield notedRows.map(notedOf)
      const end = notedRows.at(-1)
      if (!end || notedRows.length < PART) return
      last = end
    }
  }

  async remains(): Promise<{ created: string[]; deleted: string[] }> {
    const rows = await this.#ownership.database.read(REMAINS, [this.#ownership.incarnation])
    const ids = (isDeleted: boolean) =>
      rows.filter((row) => row['is_deleted'] === isDeleted).map(({ id }) => String(id))
    return { created: ids(false), deleted: ids(true) }
  }
}

const NIL = '00000000-0000-0000-0000-000000000000'
const IS_DELETED = 'exists (select from deletions d where d.conversation_id = c.id)'
const LISTED = `
  select id, head, last_at, listed_seq, listed from conversations c
  where id = $1 and has_log and head > 0 and not ${IS_DELETED}`
// One text: as rows, they take twice the processor time.
const ALL = `
  select '[' || string_agg(item, ',') || ']' as part
  from (
    select format(
      '{"id":"%s","created":"%s","lastSeq":%s,"updatedAt":%s,"listed":%s,"notedSummary":%s}',
      c.id, c.created_at, c.head, c.last_at, case when is_listed then c.listed else 'null' end, coalesce(s.value, 'null')
    ) as item
    from conversations c
      cross join lateral (
        select c.listed_seq = c.head and starts_with(c.listed, '{"format":' || $3::integer || ',') is true as is_listed
      ) l
      left join summaries s on not is_listed and s.conversation_id = c.id and s.format = $3
    where (c.created_at, c.id) > ($1::timestamptz, $2::uuid) and c.has_log and c.head > 0 and not ${IS_DELETED}
    order by c.created_at, c.id limit $4
  ) items`
const REMAINS = `
  select c.id, false as is_deleted from conversations c
  where (not c.has_log or c.head = 0) and (c.owner is null or has_ended(c.owner)) and not ${IS_DELETED}
  union all
  select c.id, true from conversations c join deletions d on d.conversation_id = c.id
  where d.deleted_by is null or (d.deleted_by <> $1 and has_ended(d.deleted_by))`

type ListedRow = Summary & { readonly format: number; readonly version: number }

type NotedRow = {
  readonly id: string
  readonly created: string
  readonly lastSeq: number
  readonly updatedAt: number
  readonly listed: ListedRow | null
  readonly notedSummary: Summary | null
}

function notedOf({ id, lastSeq, updatedAt, listed, notedSummary }: NotedRow): ListedConversation {
  const foundRow = { id, lastSeq, updatedAt }
  if (listed) {
    const { format: _, version: __, ...summary } = listed
    return { ...foundRow, summary: { ...summary, ...foundRow } }
  }
  if (!notedSummary) return foundRow
  return notedSummary.lastSeq === lastSeq
    ? { ...foundRow, summary: notedSummary }
    : { ...foundRow, former: notedSummary }
}

function listedOf({ id, head, last_at, listed_seq, listed }: PostgresRow): ListedConversation {
  const foundRow = { id: String(id), lastSeq: Number(head), updatedAt: Number(last_at) }
  // An earlier version has appended, or a fork has no own event yet.
  if (listed_seq !== head || typeof listed !== 'string' || listed === '') return foundRow
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `listedText`, in the format that is compared
  const { format, version: _, ...summary } = JSON.parse(listed) as ListedRow
  return format === SUMMARY_FORMAT ? { ...foundRow, summary: { ...summary, ...foundRow } } : foundRow
}

/** Returns what is stored with the events. Its seq and time are those of the row. */
export const listedText = (row: object): string => JSON.stringify({ format: SUMMARY_FORMAT, ...row })

/** What instances that share the database show of the conversations of each other. */
import type { Changes, ClaimedKey, ListedConversation, SharedConversations } from '../instances.ts'
import type { Summary } from '../summary.ts'
import { SUMMARY_FORMAT } from './caches.ts'
import type { KeyClaim } from './creation-claims.ts'
import { claimKey, freeKey, releaseKey } from './creation-claims.ts'
import type { RowOwnership } from './ownership.ts'
import type { PostgresRow } from './session.ts'

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
    const [row] = await this.#ownership.database.read(LISTED, [id])
    return row && listedOf(row)
  }
}

const LISTED = 'select id, head, last_at, listed_seq, listed from conversations where id = $1 and has_log and head > 0'

function listedOf({ id, head, last_at, listed_seq, listed }: PostgresRow): ListedConversation {
  const foundRow = { id: String(id), lastSeq: Number(head), updatedAt: Number(last_at) }
  // An earlier version has appended, or a fork has no own event yet.
  if (listed_seq !== head || typeof listed !== 'string' || listed === '') return foundRow
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `listedText`, in the format that is compared
  const { format, ...summary } = JSON.parse(listed) as Summary & { format: number }
  return format === SUMMARY_FORMAT ? { ...foundRow, summary: { ...summary, ...foundRow } } : foundRow
}

/** Returns what is stored with the events. Its seq and time are those of the row. */
export const listedText = (row: object): string => JSON.stringify({ format: SUMMARY_FORMAT, ...row })

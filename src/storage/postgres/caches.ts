/** What saves time and may be lost: the snapshot and the summary of each conversation. */
import { LatestWrites } from '../shared/latest-writes.ts'
import type { NotedSummaries, Snapshots, Summary, SummaryCache } from '../storage.ts'
import type { PostgresDatabase } from './database.ts'
import { WRITE_DOCUMENT, readDocument } from './documents.ts'
import type { RowOwnership } from './ownership.ts'

const SNAPSHOT = 'snapshot'

export class SnapshotRows implements Snapshots {
  readonly #ownership: RowOwnership
  readonly #writes = new LatestWrites(async (id, snapshot) => {
    await this.#ownership.write(WRITE_DOCUMENT, id, [SNAPSHOT, JSON.stringify(snapshot)], 'cache')
  })

  constructor(ownership: RowOwnership) {
    this.#ownership = ownership
  }

  /** Reads after pending writes. */
  async read(id: string): Promise<unknown> {
    await this.written(id)
    const text = await readDocument(this.#ownership.database, id, SNAPSHOT)
    return text === undefined ? undefined : JSON.parse(text)
  }

  write(id: string, snapshot: object): Promise<void> {
    return this.#writes.write(id, snapshot)
  }

  written(id: string): Promise<void> {
    return this.#writes.written(id)
  }

  settled(): Promise<void> {
    return this.#writes.settled()
  }
}

/** Raised when the type `Summary` changes: others are made again. */
export const SUMMARY_FORMAT = 2

/** A summary is valid while its log has the same head. */
export class SummaryRows implements SummaryCache {
  readonly #database: PostgresDatabase
  readonly #onFault: (error: unknown) => void
  /** What is to be written, by id; undefined for what is to be forgotten. */
  #changes = new Map<string, Summary | undefined>()
  #writing: Promise<void> | undefined

  constructor(database: PostgresDatabase, onFault: (error: unknown) => void) {
    this.#database = database
    this.#onFault = onFault
  }

  async read(): Promise<NotedSummaries> {
    const lastSummaries = new Map<string, Summary>()
    const currentIds = new Set<string>()
    try {
      for (const { part, is_current: isCurrent } of await this.#database.read(READ, [SUMMARY_FORMAT])) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this class, in this format
        for (const summary of JSON.parse(String(part)) as Summary[]) {
          lastSummaries.set(summary.id, summary)
          if (isCurrent === true) currentIds.add(summary.id)
        }
      }
    } catch (error) {
      this.#onFault(error)
    }
    return {
      current: async (ids) => ids.map((id) => (currentIds.has(id) ? lastSummaries.get(id) : undefined)),
      last: (id) => lastSummaries.get(id),
    }
  }

  noteFor(id: string): (summary: Summary) => void {
    return (summary) => this.#change(id, summary)
  }

  async forget(id: string): Promise<void> {
    this.#change(id, undefined)
    await this.settled()
  }

  async tidy(isThere: (id: string) => boolean): Promise<void> {
    try {
      const rows = await this.#database.read(WITHOUT_LOG)
      for (const { id } of rows) if (!isThere(String(id))) this.#change(String(id), undefined)
      await this.settled()
    } catch (error) {
      this.#onFault(error)
    }
  }

  /** Resolves when nothing waits to be written. */
  async settled(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  #change(id: string, summary: Summary | undefined): void {
    this.#changes.set(id, summary)
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined))
  }

  async #writeAll(): Promise<void> {
    // The next turn writes: many change together.
    await Promise.resolve()
    while (this.#changes.size > 0) {
      const changes = [...this.#changes]
      this.#changes = new Map()
      const notedSummaries = changes.flatMap(([, summary]) => summary ?? [])
      const forgottenIds = changes.flatMap(([id, summary]) => (summary ? [] : [id]))
      try {
        await this.#database.write(
          CHANGE,
          [
            forgottenIds,
            notedSummaries.map(({ id }) => id),
            notedSummaries.map(({ lastSeq }) => lastSeq),
            notedSummaries.map((summary) => JSON.stringify(summary)),
            SUMMARY_FORMAT,
          ],
          'cache',
        )
      } catch (error) {
        this.#onFault(error)
      }
    }
  }
}

// A thousand in one text: as rows, they took twice the processor time of a start. What other instances append meanwhile, the
// start learns after that.
const READ = `
  select '[' || string_agg(value, ',') || ']' as part, is_current
  from (
    select s.value, coalesce(c.has_log and c.head = s.last_seq, false) as is_current, row_number() over () / 1000 as number
    from summaries s left join conversations c on c.id = s.conversation_id
    where s.format = $1
  ) noted
  group by number, is_current`
const WITHOUT_LOG = `
  select conversation_id as id from summaries s
  where not exists (select from conversations c where c.id = s.conversation_id and c.has_log)`
const CHANGE = `
  with forgotten as (delete from summaries where conversation_id = any($1::uuid[]))
  insert into summaries (conversation_id, last_seq, value, format)
  select n.*, $5 from unnest($2::uuid[], $3::bigint[], $4::text[]) n
  on conflict (conversation_id) do update
    set last_seq = excluded.last_seq, format = excluded.format, value = excluded.value`

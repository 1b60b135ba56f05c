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
    const notedSummaries = new Map<string, Summary>()
    try {
      for (const row of await this.#database.read('select value from summaries where format = $1', [SUMMARY_FORMAT])) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this class, in this format
        const summary = JSON.parse(String(row['value'])) as Summary
        notedSummaries.set(summary.id, summary)
      }
    } catch (error) {
      this.#onFault(error)
    }
    return {
      current: async (ids, signal) => {
        const heads = await this.#heads()
        signal.throwIfAborted()
        return ids.map((id) => {
          const summary = notedSummaries.get(id)
          return summary?.lastSeq === heads.get(id) ? summary : undefined
        })
      },
      last: (id) => notedSummaries.get(id),
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
      const rows = await this.#database.read('select conversation_id as id from summaries')
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

  async #heads(): Promise<Map<string, number>> {
    const rows = await this.#database.read('select id, head from conversations where has_log')
    return new Map(rows.map((row) => [String(row['id']), Number(row['head'])]))
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

const CHANGE = `
  with forgotten as (delete from summaries where conversation_id = any($1::uuid[]))
  insert into summaries (conversation_id, last_seq, value, format)
  select n.*, $5 from unnest($2::uuid[], $3::bigint[], $4::text[]) n
  on conflict (conversation_id) do update
    set last_seq = excluded.last_seq, format = excluded.format, value = excluded.value`

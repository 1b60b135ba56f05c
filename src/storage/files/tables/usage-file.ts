/** What answers took, in the SQLite database `usage.db`. Its thread reads it too: a sum over many answers takes long. */
import { closeSync, openSync, rmSync } from 'node:fs'
import { ANSWER_COLUMNS, GROUPS, sumOf, sumStatement, valuesOfAnswer } from '../../shared/usage-sums.ts'
import type { CountedConversation, UsageQuery, UsageSum, UsageTable } from '../../usage.ts'
import { isDamaged, isOfOtherTables, loadSqlite } from '../directory/sqlite.ts'
import type { Row, TableStep } from './table-thread.ts'
import { BUSY_MS, ReplacedTables, Tables, step, urlOf } from './tables.ts'

/** Raised when answers are counted differently or the tables change: they are made again. */
const FORMAT = 1

/** The answers of a time are next to each other. */
const SCHEMA = `
  DROP TABLE IF EXISTS conversations;
  DROP TABLE IF EXISTS answers;
  CREATE TABLE conversations (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, through_seq INTEGER NOT NULL, user_id TEXT, labels TEXT NOT NULL
  ) STRICT;
  CREATE TABLE answers (
    conversation INTEGER NOT NULL, at INTEGER NOT NULL, seq INTEGER NOT NULL, model TEXT NOT NULL,
    input_tokens REAL NOT NULL, output_tokens REAL NOT NULL, cached_tokens REAL NOT NULL,
    cache_write_tokens REAL NOT NULL, cost_usd REAL, PRIMARY KEY (at, conversation, seq)
  ) STRICT, WITHOUT ROWID;
  PRAGMA user_version = ${FORMAT}`

const NOTE = `INSERT INTO conversations (id, through_seq, user_id, labels) VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET through_seq = excluded.through_seq, user_id = excluded.user_id, labels = excluded.labels`
const COLUMNS = ANSWER_COLUMNS.split(', ').map((_, at) => `v.value ->> ${at}`)
const ADD = `INSERT OR IGNORE INTO answers (conversation, ${ANSWER_COLUMNS})
  SELECT c.number, ${COLUMNS.join(', ')} FROM json_each(?) v, conversations c WHERE c.id = ?`

export type UsageFileDeps = {
  /** Created with the first use. */
  readonly path: string
  /** Called when it was damaged, and is made again. */
  readonly onFault: (error: unknown) => void
}

export class UsageFile implements UsageTable {
  readonly #deps: UsageFileDeps
  #tables: Tables | undefined

  constructor(deps: UsageFileDeps) {
    this.#deps = deps
  }

  async counted(): Promise<ReadonlyMap<string, number>> {
    const [rows = []] = await this.#run(step('SELECT id, through_seq FROM conversations'))
    return new Map(rows.map((row) => [String(row['id']), Number(row['through_seq'])]))
  }

  async add(conversations: readonly CountedConversation[]): Promise<void> {
    await this.#run(
      ...conversations.flatMap(({ id, throughSeq, userId, labels, answers }) => [
        step(NOTE, id, throughSeq, userId ?? null, JSON.stringify(labels)),
        ...(answers.length > 0 ? [step(ADD, JSON.stringify(answers.map(valuesOfAnswer)), id)] : []),
      ]),
    )
  }

  async sum({ edges, by, only, limit }: UsageQuery): Promise<UsageSum[]> {
    const buckets = edges.slice(1).map((end, at) => [edges[at], end])
    const ids = only.conversations && JSON.stringify(only.conversations)
    const [rows = []] = await this.#run(
      step(
        sumStatement(GROUPS[by ?? 'all'], fromOf(by), '?4'),
        JSON.stringify(buckets),
        ids ?? null,
        only.userId ?? null,
        limit,
      ),
    )
    return rows.map(sumOf)
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#tables?.settled()
  }

  async close(): Promise<void> {
    await this.#tables?.[Symbol.asyncDispose]()
    this.#tables = undefined
  }

  async #run(...steps: readonly TableStep[]): Promise<readonly (readonly Row[])[]> {
    try {
      return await this.#opened().write(...steps)
    } catch (error) {
      const isReplaced = error instanceof ReplacedTables
      if (!isReplaced && !isDamaged(error) && !isOfOtherTables(error)) throw error
      this.#deps.onFault(error)
      await this.close()
      for (const suffix of ['', '-journal']) rmSync(this.#deps.path + suffix, { force: true })
      // The next use makes it again: nobody has to restart the server for that.
      throw isReplaced ? new Error('the table was removed', { cause: error }) : error
    }
  }

  #opened(): Tables {
    if (this.#tables) return this.#tables
    const { path } = this.#deps
    closeSync(openSync(path, 'a', 0o600)) // SQLite would let others read it
    const database = new (loadSqlite().DatabaseSync)(new URL(urlOf(path)), { timeout: BUSY_MS })
    try {
      if (database.prepare('PRAGMA user_version').get()?.['user_version'] !== FORMAT) database.exec(SCHEMA)
    } finally {
      database.close()
    }
    return (this.#tables = new Tables(path))
  }
}

function fromOf(by: UsageQuery['by']): string {
  const labels = by === 'label' ? 'left join json_each(c.labels) l' : ''
  return `(SELECT key AS bucket, value ->> 0 AS start, value ->> 1 AS ending FROM json_each(?1)) b
    JOIN answers a ON a.at >= b.start AND a.at < b.ending
    JOIN conversations c ON c.number = a.conversation ${labels}
    WHERE (?2 IS NULL OR c.id IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR c.user_id = ?3)`
}

/** Writes what belongs to a conversation, unless this instance was ended, or another one that lives owns the conversation. */
import { Problem } from '../../contract/problem.ts'
import type { PoolName, PostgresDatabase } from './database.ts'

export class RowOwnership {
  readonly database: PostgresDatabase
  /** The incarnation of this instance. */
  readonly incarnation: number

  constructor(database: PostgresDatabase, incarnation: number) {
    this.database = database
    this.incarnation = incarnation
  }

  /**
   * Executes statements as one, as `PostgresDatabase.write` does: `$1` is the conversation, and the values begin with `$3`.
   * Each changes rows, and selects from `allowed`, which has one row, or none if this instance may not write. Then it throws a `Problem`.
   */
  async write(
    text: string | readonly string[],
    id: string,
    values: readonly unknown[] = [],
    pool?: PoolName,
  ): Promise<void> {
    if (!(await this.#execute([text].flat(), [id, this.incarnation, ...values], pool))) throw ownedByAnother()
  }

  /** Does the same for what is removed; does nothing if this instance may not write: the owner removes it. */
  async remove(text: string, id: string, values: readonly unknown[] = []): Promise<void> {
    await this.#execute([text], [id, this.incarnation, ...values])
  }

  /** Calls a function of the database under the same condition. */
  async call(name: 'empty_log' | 'remove_conversation', id: string): Promise<void> {
    await this.database.write(`select ${name}($1) where may_write($1, $2)`, [id, this.incarnation])
  }

  async #execute(texts: readonly string[], values: readonly unknown[], pool?: PoolName): Promise<boolean> {
    const parts = texts.map((text, i) => `part_${i} as (${text})`)
    const rows = await this.database.write(`${ALLOWED}, ${parts.join(', ')} select from allowed`, values, pool)
    return rows.length > 0
  }
}

const ALLOWED = `
  with allowed as materialized (
    select from (select may_write($1::uuid, $2::bigint) as is_allowed offset 0) checked where is_allowed
  )`

export const ownedByAnother = (): Problem =>
  new Problem(
    'storage_unavailable',
    'Another instance of the server has this conversation, and nothing was stored here. Send the request to that one.',
  )

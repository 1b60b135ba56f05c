/** Sets of conversations: marks, deletions with the keys of their creates, and those that share a workdir. */
import type { CreationKey, Deletions, Marks, SharedWorkdirs } from '../storage.ts'
import { hashOfWorkdir } from '../shared/workdir-hash.ts'
import type { PostgresDatabase } from './database.ts'

export class MarksTable implements Marks {
  readonly #database: PostgresDatabase
  readonly #kind: string

  constructor(database: PostgresDatabase, kind: string) {
    this.#database = database
    this.#kind = kind
  }

  async set(id: string): Promise<void> {
    await this.#database.write('insert into marks values ($1, $2) on conflict do nothing', [this.#kind, id])
  }

  async clear(id: string): Promise<void> {
    await this.#database.write('delete from marks where kind = $1 and conversation_id = $2', [this.#kind, id])
  }

  async ids(): Promise<string[]> {
    const rows = await this.#database.read('select conversation_id as id from marks where kind = $1', [this.#kind])
    return rows.map(({ id }) => String(id))
  }
}

export class DeletionsTable implements Deletions {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async mark(id: string, key?: CreationKey): Promise<void> {
    const values = key && [key.key, key.bodyHash, key.id, key.at, Date.parse(key.at)]
    await this.#database.write(values ? MARK_WITH_KEY : MARK, [id, ...(values ?? [])])
  }

  async has(id: string): Promise<boolean> {
    return (await this.#database.read('select from deletions where conversation_id = $1', [id])).length > 0
  }

  async ids(): Promise<string[]> {
    const rows = await this.#database.read('select conversation_id as id from deletions')
    return rows.map(({ id }) => String(id))
  }

  async keys(after: number): Promise<CreationKey[]> {
    await this.#database.write('delete from creation_keys where used_at_ms <= $1', [after])
    const rows = await this.#database.read('select * from creation_keys')
    return rows.map((row) => ({
      key: String(row['key']),
      bodyHash: String(row['body_hash']),
      id: String(row['conversation_id']),
      at: String(row['used_at']),
    }))
  }
}

const MARK = 'insert into deletions (conversation_id) values ($1) on conflict do nothing'
const MARK_WITH_KEY = `
  with marked as (${MARK})
  insert into creation_keys values ($2, $3, $4, $5, $6)
  on conflict (key) do update
    set body_hash = excluded.body_hash, conversation_id = excluded.conversation_id, used_at = excluded.used_at,
      used_at_ms = excluded.used_at_ms`

export class SharedWorkdirsTable implements SharedWorkdirs {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async add(workdir: string, ids: readonly string[]): Promise<void> {
    const text = 'insert into shared_workdirs select $1, id from unnest($2::uuid[]) id on conflict do nothing'
    await this.#database.write(text, [hashOfWorkdir(workdir), ids])
  }

  async isShared(workdir: string): Promise<boolean> {
    return (
      (await this.#database.read('select from shared_workdirs where workdir = $1 limit 1', [hashOfWorkdir(workdir)]))
        .length > 0
    )
  }

  async has(workdir: string, id: string): Promise<boolean> {
    const text = 'select from shared_workdirs where workdir = $1 and conversation_id = $2'
    return (await this.#database.read(text, [hashOfWorkdir(workdir), id])).length > 0
  }

  async move(workdir: string, to: string): Promise<void> {
    await this.#database.write(MOVE, [hashOfWorkdir(workdir), hashOfWorkdir(to)])
  }

  async leave(workdir: string, id: string): Promise<boolean> {
    const [found] = await this.#database.write(LEAVE, [hashOfWorkdir(workdir), id])
    return found?.['is_empty'] === true
  }
}

const MOVE = `
  update shared_workdirs set workdir = $2
  where workdir = $1 and not exists (select from shared_workdirs where workdir = $2)`
// The rest of a statement does not see what a part of it has removed.
const LEAVE = `
  with gone as (
    delete from shared_workdirs where workdir = $1
      and (conversation_id = $2 or not exists (select from conversations c where c.id = conversation_id))
    returning conversation_id
  )
  select not exists (
    select from shared_workdirs where workdir = $1 and conversation_id not in (select conversation_id from gone)
  ) as is_empty`

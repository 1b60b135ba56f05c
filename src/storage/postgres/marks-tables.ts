/** Sets of conversations: marks, deletions with the keys of their creates, and those that share a workdir. */
import type { CreationKey, Deletions, Marks, SharedWorkdirs } from '../storage.ts'
import { hashOfWorkdir } from '../shared/workdir-hash.ts'
import type { PostgresDatabase } from './database.ts'
import { isUuid } from './is-uuid.ts'
import { IS_KNOWN_VERSION } from './known-version.ts'
import type { RowOwnership } from './ownership.ts'

export class MarksTable implements Marks {
  readonly #ownership: RowOwnership
  readonly #kind: string

  constructor(ownership: RowOwnership, kind: string) {
    this.#ownership = ownership
    this.#kind = kind
  }

  async set(id: string): Promise<void> {
    await this.#ownership.write(this.#kind === 'active' ? [SET, BEGUN] : SET, id, [this.#kind])
  }

  async clear(id: string): Promise<void> {
    const text = 'delete from marks using allowed where kind = $3 and conversation_id = $1'
    await this.#ownership.remove(text, id, [this.#kind])
  }

  async ids(): Promise<string[]> {
    const { database, incarnation } = this.#ownership
    const rows = await database.read(MARKED, [this.#kind, incarnation])
    return rows.map(({ id }) => String(id))
  }
}

const SET = 'insert into marks select $3, $1 from allowed on conflict do nothing'
// What begins now would be cut off, also in a conversation that an instance has left between two steps.
const BEGUN = 'update conversations set is_released = false from allowed where id = $1 and is_released'
// What another instance that lives has is its own business.
const MARKED = `
  select m.conversation_id as id from marks m left join conversations c on c.id = m.conversation_id
  where m.kind = $1 and (c.owner is null or c.owner = $2 or has_ended(c.owner)) and ${IS_KNOWN_VERSION}`

export class DeletionsTable implements Deletions {
  readonly #database: PostgresDatabase
  readonly #ownership: RowOwnership
  readonly #onMarked: () => void

  /** `onMarked` is called after each new mark. */
  constructor(ownership: RowOwnership, onMarked: () => void = () => {}) {
    this.#database = ownership.database
    this.#ownership = ownership
    this.#onMarked = onMarked
  }

  async mark(id: string, key?: CreationKey): Promise<void> {
    const values = key && [key.key, key.bodyHash, key.id, key.at, Date.parse(key.at)]
    await this.#ownership.write(values ? [MARK, NOTE_KEY] : MARK, id, values)
    this.#onMarked()
  }

  async has(id: string): Promise<boolean> {
    return (
      isUuid(id) && (await this.#database.read('select from deletions where conversation_id = $1', [id])).length > 0
    )
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

const MARK = `
  insert into deletions (conversation_id, deleted_by) select $1, $2 from allowed
  on conflict do nothing`
const NOTE_KEY = `
  insert into creation_keys select $3, $4, $5, $6, $7 from allowed
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
    const [foundRow] = await this.#database.write(LEAVE, [hashOfWorkdir(workdir), id])
    return foundRow?.['is_empty'] === true
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

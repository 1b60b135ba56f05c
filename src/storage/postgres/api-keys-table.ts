/** The API keys of the server as rows, and the version of the table. */
import { randomUUID } from 'node:crypto'
import type { ApiKeyTable, StoredApiKey } from '../storage.ts'
import type { PostgresDatabase } from './database.ts'

export class ApiKeysTable implements ApiKeyTable {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async read(): Promise<{ version: number; keys: readonly StoredApiKey[] }> {
    // One statement, so that the keys are those of the version.
    const rows = await this.#database.read(READ)
    const keys = rows.flatMap(({ id, value, used_at: usedAt }) =>
      typeof id === 'string' && typeof value === 'string'
        ? { id, value: JSON.parse(value) as unknown, usedAt: typeof usedAt === 'string' ? usedAt : undefined }
        : [],
    )
    return { version: Number(rows[0]?.['version']), keys }
  }

  async version(): Promise<number> {
    const [row] = await this.#database.read('select version from api_key_version')
    return Number(row?.['version'])
  }

  async change(version: number, id: string, value: unknown): Promise<number | undefined> {
    const values = [version, randomUUID(), id, value === undefined ? null : JSON.stringify(value)]
    const [row] = await this.#database.write(CHANGE, values)
    return row && Number(row['version'])
  }

  async noteUses(uses: ReadonlyMap<string, string>): Promise<void> {
    const text = 'update api_keys k set used_at = u.at from unnest($1::text[], $2::text[]) u(id, at) where k.id = u.id'
    await this.#database.write(text, [[...uses.keys()], [...uses.values()]])
  }
}

const READ = `
  select v.version, k.id, k.value, k.used_at from api_key_version v left join api_keys k on true order by k.number`
// A repeated statement finds what it has changed by the number of its request.
const CHANGE = `
  with changed as (
    update api_key_version set version = version + 1, changed_by = $2 where version = $1 returning version
  ), removed as (
    delete from api_keys using changed where id = $3 and $4::text is null
  ), stored as (
    insert into api_keys (id, value) select $3, $4 from changed where $4::text is not null
    on conflict (id) do update set value = excluded.value
  )
  select version from changed
  union all
  select version from api_key_version where changed_by = $2 and not exists (select from changed)`

/** API keys, logins or profiles as rows, and the version of their table. */
import { randomUUID } from 'node:crypto'
import type { CredentialTable, StoredCredential } from '../storage.ts'
import type { PostgresDatabase } from './database.ts'

export class CredentialsTable implements CredentialTable {
  readonly #database: PostgresDatabase
  readonly #name: string
  readonly #versionName: string

  /** The names of the table, and of the one with its version. */
  constructor(database: PostgresDatabase, name: string, versionName: string) {
    this.#database = database
    this.#name = name
    this.#versionName = versionName
  }

  async read(): Promise<{ version: number; keys: readonly StoredCredential[] }> {
    // One statement, so that the keys are those of the version.
    const rows = await this.#database.read(
      `select v.version, k.id, k.value, k.used_at from ${this.#versionName} v left join ${this.#name} k on true order by k.number`,
    )
    const keys = rows.flatMap(({ id, value, used_at: usedAt }) =>
      typeof id === 'string' && typeof value === 'string'
        ? { id, value: JSON.parse(value) as unknown, usedAt: typeof usedAt === 'string' ? usedAt : undefined }
        : [],
    )
    return { version: Number(rows[0]?.['version']), keys }
  }

  async version(): Promise<number> {
    const [row] = await this.#database.read(`select version from ${this.#versionName}`)
    return Number(row?.['version'])
  }

  async change(version: number, id: string, value: unknown): Promise<number | undefined> {
    const values = [version, randomUUID(), id, value === undefined ? null : JSON.stringify(value)]
    const [row] = await this.#database.write(changeOf(this.#name, this.#versionName), values)
    return row && Number(row['version'])
  }

  async noteUses(uses: ReadonlyMap<string, string>): Promise<void> {
    const text = `update ${this.#name} k set used_at = u.at from unnest($1::text[], $2::text[]) u(id, at) where k.id = u.id`
    await this.#database.write(text, [[...uses.keys()], [...uses.values()]])
  }
}

// A repeated statement finds what it has changed by the number of its request.
const changeOf = (name: string, versionName: string) => `
  with changed as (
    update ${versionName} set version = version + 1, changed_by = $2 where version = $1 returning version
  ), removed as (
    delete from ${name} using changed where id = $3 and $4::text is null
  ), stored as (
    insert into ${name} (id, value) select $3, $4 from changed where $4::text is not null
    on conflict (id) do update set value = excluded.value
  )
  select version from changed
  union all
  select version from ${versionName} where changed_by = $2 and not exists (select from changed)`

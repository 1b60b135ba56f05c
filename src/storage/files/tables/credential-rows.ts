/** API keys, logins or profiles as rows, with the version of their table. */
import type { CredentialTable, StoredCredential } from '../../storage.ts'
import type { Tables } from './tables.ts'
import { step } from './tables.ts'

/** The columns of each table. */
export const CREDENTIAL_COLUMNS =
  '(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, value TEXT NOT NULL, used_at TEXT) STRICT'

type TableName = 'api_keys' | 'logins' | 'profiles'

export class CredentialRows implements CredentialTable {
  readonly #tables: Tables
  readonly #name: TableName
  /**
   * The version of the table, once it was read: nobody else writes it. Undefined after a refused change, which was from
   * another.
   */
  #version: number | undefined

  /** Tables that earlier versions have not are made when they are used first. */
  constructor(tables: Tables, name: TableName) {
    this.#tables = tables
    this.#name = name
  }

  async read(): Promise<{ version: number; keys: readonly StoredCredential[] }> {
    const version = await this.version()
    const rows = await this.#tables.read(`SELECT id, value, used_at FROM ${this.#name} ORDER BY number`)
    return { version, keys: rows.map(({ id, value, used_at }) => keyOf(String(id), String(value), used_at)) }
  }

  async version(): Promise<number> {
    if (this.#version !== undefined) return this.#version
    if (this.#name !== 'api_keys') await this.#make()
    const [row] = await this.#tables.read('SELECT number FROM versions WHERE name = ?', this.#name)
    // A change may have been stored since this was read.
    return (this.#version = Math.max(this.#version ?? 0, Number(row?.['number'])))
  }

  async change(version: number, id: string, value: unknown): Promise<number | undefined> {
    const { put, remove, count } = sqlOf(this.#name)
    const changeStep = value === undefined ? step(remove, id, version) : step(put, id, JSON.stringify(value), version)
    const [, countRows] = await this.#tables.write(changeStep, step(count, version))
    const next = countRows?.[0]
    this.#version = next && Number(next['number'])
    return this.#version
  }

  async noteUses(uses: ReadonlyMap<string, string>): Promise<void> {
    const sql = `UPDATE ${this.#name} SET used_at = ? WHERE id = ?`
    await this.#tables.write(...[...uses].map(([id, time]) => step(sql, time, id)))
  }

  async #make(): Promise<void> {
    await this.#tables.write(
      step(`CREATE TABLE IF NOT EXISTS ${this.#name} ${CREDENTIAL_COLUMNS}`),
      step('INSERT INTO versions VALUES (?, 1) ON CONFLICT DO NOTHING', this.#name),
    )
  }
}

function sqlOf(name: string) {
  const isCurrent = `EXISTS (SELECT 1 FROM versions WHERE name = '${name}' AND number = ?)`
  return {
    put: `INSERT INTO ${name} (id, value) SELECT ?, ? WHERE ${isCurrent}
      ON CONFLICT (id) DO UPDATE SET value = excluded.value`,
    remove: `DELETE FROM ${name} WHERE id = ? AND ${isCurrent}`,
    count: `UPDATE versions SET number = number + 1 WHERE name = '${name}' AND number = ? RETURNING number`,
  }
}

/** A value that is not JSON is refused by its reader. */
function keyOf(id: string, text: string, usedAt: unknown): StoredCredential {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  return { id, value, usedAt: typeof usedAt === 'string' ? usedAt : undefined }
}

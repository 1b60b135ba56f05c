/** The API keys as rows. */
import type { ApiKeyTable, StoredApiKey } from '../../storage.ts'
import type { Tables } from './tables.ts'
import { step } from './tables.ts'

const IS_CURRENT = "EXISTS (SELECT 1 FROM versions WHERE name = 'api_keys' AND number = ?)"
const PUT = `INSERT INTO api_keys (id, value) SELECT ?, ? WHERE ${IS_CURRENT}
  ON CONFLICT (id) DO UPDATE SET value = excluded.value`
const REMOVE = `DELETE FROM api_keys WHERE id = ? AND ${IS_CURRENT}`
const COUNT = "UPDATE versions SET number = number + 1 WHERE name = 'api_keys' AND number = ? RETURNING number"

export class ApiKeyRows implements ApiKeyTable {
  readonly #tables: Tables
  /** That of the table, once it was read: nobody else writes it. Undefined after a refused change, which was from another. */
  #version: number | undefined

  constructor(tables: Tables) {
    this.#tables = tables
  }

  async read(): Promise<{ version: number; keys: readonly StoredApiKey[] }> {
    const version = await this.version()
    const rows = await this.#tables.read('SELECT id, value, used_at FROM api_keys ORDER BY number')
    return { version, keys: rows.map(({ id, value, used_at }) => keyOf(String(id), String(value), used_at)) }
  }

  async version(): Promise<number> {
    if (this.#version !== undefined) return this.#version
    const [row] = await this.#tables.read('SELECT number FROM versions')
    // A change may have been stored since this was read.
    return (this.#version = Math.max(this.#version ?? 0, Number(row?.['number'])))
  }

  async change(version: number, id: string, value: unknown): Promise<number | undefined> {
    const changed = value === undefined ? step(REMOVE, id, version) : step(PUT, id, JSON.stringify(value), version)
    const [, counted] = await this.#tables.write(changed, step(COUNT, version))
    const next = counted?.[0]
    this.#version = next && Number(next['number'])
    return this.#version
  }

  async noteUses(uses: ReadonlyMap<string, string>): Promise<void> {
    const steps = [...uses].map(([id, time]) => step('UPDATE api_keys SET used_at = ? WHERE id = ?', time, id))
    await this.#tables.write(...steps)
  }
}

/** A value that is not JSON is refused by its reader. */
function keyOf(id: string, text: string, usedAt: unknown): StoredApiKey {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  return { id, value, usedAt: typeof usedAt === 'string' ? usedAt : undefined }
}

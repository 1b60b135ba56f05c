/** The deleted conversations, and the keys of their creates, as rows. */
import { createSlices } from '../../../lib/time-slices.ts'
import type { CreationKey, Deletions } from '../../storage.ts'
import type { Row } from './table-thread.ts'
import type { Tables } from './tables.ts'
import { step } from './tables.ts'

/** The ids of a page are one text: reading each by itself would hold up the start of a server that has deleted much. */
const IDS = `SELECT group_concat(id) AS ids, max(id) AS last
  FROM (SELECT id FROM deletions WHERE id > ? ORDER BY id LIMIT 4096)`
const FORGET = 'UPDATE deletions SET key = NULL, body_hash = NULL, at = NULL WHERE id = ?'

export class DeletionRows implements Deletions {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  async mark(id: string, key?: CreationKey): Promise<void> {
    const values = [key?.key ?? null, key?.bodyHash ?? null, key?.at ?? null] as const
    await this.#tables.write(step('INSERT INTO deletions VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING', id, ...values))
  }

  async has(id: string): Promise<boolean> {
    return (await this.#tables.read('SELECT 1 FROM deletions WHERE id = ?', id)).length > 0
  }

  async ids(): Promise<string[]> {
    const pages: string[] = []
    const slices = createSlices()
    for (let last = ''; ;) {
      const [page] = await this.#tables.read(IDS, last)
      if (typeof page?.['ids'] !== 'string') return pages.flatMap((ids) => ids.split(','))
      last = String(page['last'])
      pages.push(page['ids'])
      await slices.rest()
    }
  }

  async keys(after: number): Promise<CreationKey[]> {
    const rows = await this.#tables.read('SELECT id, key, body_hash, at FROM deletions WHERE at IS NOT NULL')
    const [recent, old] = [[] as CreationKey[], [] as CreationKey[]]
    for (const key of rows.map(keyOf)) (Date.parse(key.at) > after ? recent : old).push(key)
    if (old.length > 0) await this.#tables.write(...old.map(({ id }) => step(FORGET, id)))
    return recent
  }
}

const keyOf = ({ id, key, body_hash: bodyHash, at }: Row): CreationKey => ({
  key: String(key),
  bodyHash: String(bodyHash),
  id: String(id),
  at: String(at),
})

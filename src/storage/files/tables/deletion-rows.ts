/**
 * The deleted conversations, and the keys of their creates, as rows. A full disk has no room for a row, and deleting is what
 * makes room: then an empty file in the directory `deletions` is the mark, until there is room for its row.
 */
import { join } from 'node:path'
import { createSlices } from '../../../lib/time-slices.ts'
import type { CreationKey, Deletions } from '../../storage.ts'
import { exists, MarkFiles } from '../directory/mark-files.ts'
import type { Row } from './table-thread.ts'
import type { Tables } from './tables.ts'
import { step } from './tables.ts'

/** The ids of a page are one text: reading each by itself would hold up the start of a server that has deleted much. */
const IDS = `SELECT group_concat(id) AS ids, max(id) AS last
  FROM (SELECT id FROM deletions WHERE id > ? ORDER BY id LIMIT 4096)`
const FORGET = 'UPDATE deletions SET key = NULL, body_hash = NULL, at = NULL WHERE id = ?'

export class DeletionRows implements Deletions {
  readonly #tables: Tables
  readonly #directory: string
  readonly #files: MarkFiles
  /** The ids whose mark is a file of this process. A kill forgets the keys: a repeated create is a new one then. */
  readonly #unwritten = new Map<string, CreationKey | undefined>()

  /** `directory` exists and is durable. */
  constructor(tables: Tables, directory: string) {
    this.#tables = tables
    this.#directory = directory
    this.#files = new MarkFiles(directory)
  }

  async mark(id: string, key?: CreationKey): Promise<void> {
    try {
      await this.#tables.write(rowOf(id, key))
    } catch (error) {
      await this.#files.set(id).catch(() => {
        throw error
      })
      this.#unwritten.set(id, key)
      return
    }
    await this.settle()
  }

  /** Writes the rows for which there was no room, if there is room now. */
  async settle(): Promise<void> {
    const unwritten = new Map(this.#unwritten)
    if (unwritten.size > 0) await this.#moveToRows(unwritten).catch(() => {}) // there is still no room: the files stay
  }

  async has(id: string): Promise<boolean> {
    const rows = await this.#tables.read('SELECT 1 FROM deletions WHERE id = ?', id)
    return rows.length > 0 || (await exists(join(this.#directory, id)))
  }

  async ids(): Promise<string[]> {
    const markedIds = await this.#files.ids()
    const unwritten = new Map(markedIds.map((id) => [id, undefined]))
    if (markedIds.length > 0) await this.#moveToRows(unwritten).catch(() => {}) // there is still no room: the files stay
    return [...new Set([...(await this.#idsOfRows()), ...markedIds])]
  }

  async #moveToRows(unwritten: ReadonlyMap<string, CreationKey | undefined>): Promise<void> {
    await this.#tables.write(...[...unwritten].map(([id, key]) => rowOf(id, key)))
    for (const id of unwritten.keys()) this.#unwritten.delete(id)
    await Promise.all([...unwritten.keys()].map((id) => this.#files.clear(id)))
  }

  async #idsOfRows(): Promise<string[]> {
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

const rowOf = (id: string, { key, bodyHash, at }: Partial<CreationKey> = {}) =>
  step(
    'INSERT INTO deletions VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    id,
    key ?? null,
    bodyHash ?? null,
    at ?? null,
  )

const keyOf = ({ id, key, body_hash: bodyHash, at }: Row): CreationKey => ({
  key: String(key),
  bodyHash: String(bodyHash),
  id: String(id),
  at: String(at),
})

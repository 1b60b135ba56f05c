/**
 * The search index of a data directory, `search.db`. It is made by the first search, and made again if it is damaged or
 * missing. Everything is done in a thread.
 *
 * Only words and places are stored, no texts. The number of a place begins with the second of its event: FTS5 returns rows
 * in the order of their numbers without sorting, and needs few bytes for numbers that are close to each other.
 */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { codeOf } from '../../../lib/error-code.ts'
import { loadSqlite } from '../directory/sqlite.ts'
import type { FoundPlace, IndexedPart, SearchIndex, WordQuery } from '../../search-index.ts'
import type { Row, TableStep } from '../tables/table-thread.ts'
import { step, Tables, urlOf } from '../tables/tables.ts'
import { Problem } from '../../../contract/problem.ts'

const FORMAT = 2

const SCHEMA = `
  PRAGMA user_version = ${FORMAT};
  CREATE TABLE conversations (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, head INTEGER NOT NULL) STRICT;
  CREATE TABLE places (number INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT;
  CREATE VIRTUAL TABLE texts USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');`

/** Places within a second. */
const PLACES = 2 ** 20

const HEAD = 'SELECT head FROM conversations WHERE id = ?'
const MOVE = 'INSERT INTO conversations (id, head) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET head = excluded.head'
const ADD_PLACE = `
  INSERT OR IGNORE INTO places (number, conversation, seq)
  SELECT coalesce((SELECT max(number) + 1 FROM places WHERE number BETWEEN ?1 AND ?2), ?1), number, ?3
  FROM conversations WHERE id = ?4`
const ADD_WORDS = 'INSERT INTO texts (rowid, words) SELECT last_insert_rowid(), ? WHERE changes() > 0'
const WITHIN = `conversation = (SELECT number FROM conversations WHERE id = ?1) AND seq > ?2 AND seq < ?3`
const REMOVE_WORDS = `DELETE FROM texts WHERE rowid IN (SELECT number FROM places WHERE ${WITHIN})`
const REMOVE_PLACES = `DELETE FROM places WHERE ${WITHIN}`
const FORGET = 'DELETE FROM conversations WHERE id = ?'
/** Segments have the words of rows that were removed until they are merged. */
const MERGE = "INSERT INTO texts (texts) VALUES ('optimize')"
/** How long after the last removal, in milliseconds. */
const MERGE_AFTER_MS = 60_000

const findSql = (isLimited: boolean) => `
  SELECT c.id AS id, p.seq AS seq, p.number AS number
  FROM texts CROSS JOIN places p ON p.number = texts.rowid CROSS JOIN conversations c ON c.number = p.conversation
  WHERE texts MATCH ? AND texts.rowid < ? ${isLimited ? 'AND c.id IN (SELECT value FROM json_each(?))' : ''}
  ORDER BY texts.rowid DESC LIMIT ?`

export class SearchFile implements SearchIndex, AsyncDisposable {
  readonly #path: string
  #tables: Tables | undefined
  #isClosed = false
  #merging: NodeJS.Timeout | undefined

  constructor(path: string) {
    this.#path = path
  }

  async heads(): Promise<ReadonlyMap<string, number>> {
    const [rows = []] = await this.#run([step('SELECT id, head FROM conversations')])
    return new Map(rows.map(({ id, head }) => [String(id), Number(head)]))
  }

  async add(parts: readonly IndexedPart[]): Promise<void> {
    await this.#requireHeads(parts)
    const removals = parts.flatMap(({ conversationId, removed }) =>
      removed.flatMap(({ afterSeq, beforeSeq }) => removalOf(conversationId, afterSeq, beforeSeq)),
    )
    const heads = new Map(parts.map((part) => [part.conversationId, part]))
    const moves = [...heads.values()].flatMap(({ conversationId: id, through }) => step(MOVE, id, through))
    await this.#run([...removals, ...moves, ...additionsOf(parts)])
  }

  /** Nothing else adds: only what forgets can come between this and the rest. */
  async #requireHeads(parts: readonly IndexedPart[]): Promise<void> {
    const first = [...new Map(parts.toReversed().map((part) => [part.conversationId, part])).values()]
    const headRows = await this.#run(first.map(({ conversationId }) => step(HEAD, conversationId)))
    const isRight = first.every(({ after }, at) => Number(headRows[at]?.[0]?.['head'] ?? 0) === after)
    if (!isRight) throw new Error('the search index has other heads')
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (!existsSync(this.#path)) return
    await this.#run(ids.flatMap((id) => [...removalOf(id, 0, Number.MAX_SAFE_INTEGER), step(FORGET, id)]))
    clearTimeout(this.#merging)
    this.#merging = setTimeout(() => void this.#run([step(MERGE)]).catch(() => {}), MERGE_AFTER_MS).unref()
  }

  async find({ words, limit, after, ids }: WordQuery): Promise<readonly FoundPlace[]> {
    const match = words.map((word) => `"${word}"*`).join(' AND ')
    const before = after?.number ?? Number.MAX_SAFE_INTEGER
    const query = ids
      ? step(findSql(true), match, before, JSON.stringify(ids), limit)
      : step(findSql(false), match, before, limit)
    const [rows = []] = await this.#run([query])
    return rows.map(placeOf)
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#tables?.settled()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#merging)
    await this.#tables?.[Symbol.asyncDispose]()
  }

  async #run(steps: readonly TableStep[]): Promise<readonly (readonly Row[])[]> {
    if (this.#isClosed) throw new Problem('unavailable', 'The server is stopping; try again when it is running.')
    const tables = (this.#tables ??= this.#open())
    try {
      return await tables.write(...steps)
    } catch (error) {
      // It is damaged, or another file. The next call makes it again.
      if ((error instanceof Problem || codeOf(error) === 'EIO') && this.#tables === tables) {
        this.#tables = undefined
        await tables[Symbol.asyncDispose]()
        this.#removeFiles()
      }
      throw error
    }
  }

  #open(): Tables {
    if (!existsSync(this.#path) || !this.#hasFormat()) this.#make()
    return new Tables(this.#path)
  }

  #make(): void {
    this.#removeFiles()
    closeSync(openSync(this.#path, 'a', 0o600)) // SQLite would let others read it
    const database = new (loadSqlite().DatabaseSync)(this.#path)
    try {
      database.exec(SCHEMA)
    } finally {
      database.close()
    }
  }

  #hasFormat(): boolean {
    let database
    try {
      database = new (loadSqlite().DatabaseSync)(new URL(urlOf(this.#path)))
      return database.prepare('PRAGMA user_version').get()?.['user_version'] === FORMAT
    } catch {
      return false
    } finally {
      database?.close()
    }
  }

  #removeFiles(): void {
    for (const path of [this.#path, `${this.#path}-journal`]) rmSync(path, { force: true })
  }
}

/** Adds in the order of the places: otherwise each event would become its own segment. What a later part removes is not added. */
function additionsOf(parts: readonly IndexedPart[]): TableStep[] {
  return parts
    .flatMap(({ conversationId, events }, at) => {
      const later = parts.slice(at + 1).filter((part) => part.conversationId === conversationId)
      const spans = later.flatMap(({ removed }) => removed)
      const isLeft = (seq: number) => !spans.some(({ afterSeq, beforeSeq }) => seq > afterSeq && seq < beforeSeq)
      return events.flatMap((event) => (isLeft(event.seq) ? { ...event, conversationId } : []))
    })
    .sort((a, b) => a.at - b.at)
    .flatMap(({ seq, at, words, conversationId }) => {
      const first = Math.floor(at / 1000) * PLACES
      return [step(ADD_PLACE, first, first + PLACES - 2, seq, conversationId), step(ADD_WORDS, words)]
    })
}

const removalOf = (id: string, afterSeq: number, beforeSeq: number): TableStep[] => [
  step(REMOVE_WORDS, id, afterSeq, beforeSeq),
  step(REMOVE_PLACES, id, afterSeq, beforeSeq),
]

function placeOf({ id, seq, number }: Row): FoundPlace {
  const place = { at: Math.floor(Number(number) / PLACES), number: Number(number) }
  return { conversationId: String(id), seq: Number(seq), place }
}

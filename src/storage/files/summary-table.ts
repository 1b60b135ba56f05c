/**
 * The summaries of all conversations in one SQLite database, so that startup reads one file instead of one per conversation.
 *
 * It is a cache. A row counts only while its log is unchanged, according to its stamp; any other conversation is read from
 * its own files. So no write waits for the disk: a crash only makes the next start slower, even if it damages the database,
 * which is then made again.
 */
import { closeSync, openSync, rmSync } from 'node:fs'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { Status } from '../../contract/events/status.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { Summary } from '../storage.ts'
import type { LogStamp } from './log-stamp.ts'
import type { Database, Statement } from './directory/sqlite.ts'
import { isDamaged, loadSqlite } from './directory/sqlite.ts'

export type NotedSummary = { readonly summary: Summary; readonly stamp: LogStamp }

/** Raised when summaries are derived differently or have another format: older ones are dropped. */
const FORMAT = 4

/**
 * Nothing is synced, and a transaction is undone from memory. What is deleted is overwritten, because it may be private.
 */
const SETTINGS = 'PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA secure_delete = ON'
const SCHEMA = `
  DROP TABLE IF EXISTS summaries;
  CREATE TABLE summaries (id TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT, WITHOUT ROWID;
  PRAGMA user_version = ${FORMAT}`

/** Some hundred rows, which SQLite joins: reading each by itself takes half as long again. */
const SELECT = `SELECT group_concat(entry) AS entries, max(id) AS last
  FROM (SELECT id, entry FROM summaries WHERE id > ? ORDER BY id LIMIT 256)`
const INSERT = 'INSERT OR REPLACE INTO summaries (id, entry) VALUES (?, ?)'
const DELETE = 'DELETE FROM summaries WHERE id = ?'

type Entry = readonly [
  id: string,
  size: number,
  mtimeMs: number,
  status: Status,
  lastSeq: number,
  createdAt: number,
  updatedAt: number,
  title: string | null,
  userId: string | null,
  profile: string | null,
  labels: readonly string[] | null,
  /** Names and values, in turn. */
  fields: readonly string[] | null,
  preview: string,
  lastWords: string,
  model: string | null,
  costUsd: number | null,
  isArchived: boolean,
  waiting: number,
  key: string | null,
  bodyHash: string | null,
  waitsSince: number | null,
  deadline: number | null,
  /**
   * The same value again: after a power failure, a row may begin on a page of one version and end on one of another.
   */
  mtimeMs: number,
]

type OpenedTable = { readonly database: Database; readonly insert: Statement; readonly remove: Statement }

export type SummaryTableDeps = {
  /** Created if it does not exist. */
  readonly path: string
  /** Called with errors that prevent writing entries; the next start then reads those conversations. */
  readonly onFault: (error: unknown) => void
}

export class SummaryTable {
  readonly #deps: SummaryTableDeps
  #opened: OpenedTable | undefined
  /** What is to be written, by id; undefined for what is to be forgotten. */
  #changes = new Map<string, NotedSummary | undefined>()
  #writing: Promise<void> | undefined
  /** The ids that the table may contain, until it is tidied. */
  #untidied: string[] | undefined = []

  constructor(deps: SummaryTableDeps) {
    this.#deps = deps
  }

  /** Returns the recorded summaries, each valid while its stamp matches the log. Call it once, first. */
  async read(): Promise<Map<string, NotedSummary>> {
    const notedSummaries = new Map<string, NotedSummary>()
    try {
      const slices = createSlices()
      const select = this.#open().database.prepare(SELECT)
      for (let last: unknown = ''; ;) {
        const batch = select.get(String(last))
        if (typeof batch?.['entries'] !== 'string') break
        last = batch['last']
        for (const entry of parseEntries(batch['entries'])) notedSummaries.set(entry[0], fromEntry(entry))
        await slices.rest()
      }
      this.#untidied = [...notedSummaries.keys()]
    } catch (error) {
      this.#deps.onFault(error)
      if (isDamaged(error) || error instanceof SyntaxError) this.#startOver()
    }
    return notedSummaries
  }

  /** Nobody may write the log between the creation of its stamp and that of the summary. Written in the next turn. */
  note(notedSummary: NotedSummary): void {
    this.#untidied?.push(notedSummary.summary.id)
    this.#changes.set(notedSummary.summary.id, notedSummary)
    void this.#write()
  }

  /** Resolves when the database contains nothing of the conversation. */
  async forget(id: string): Promise<void> {
    this.#changes.set(id, undefined)
    await this.#write()
  }

  /** Call it after startup: forgets conversations that no longer exist. */
  async tidy(isThere: (id: string) => boolean): Promise<void> {
    for (const id of this.#untidied ?? []) if (!isThere(id)) this.#changes.set(id, undefined)
    this.#untidied = undefined
    await this.#write()
  }

  /** Writes pending summaries. A later note opens it again. */
  async close(): Promise<void> {
    await this.#writing
    this.release()
  }

  /** Closes it without writing what is pending. */
  release(): void {
    this.#changes.clear()
    this.#opened?.database.close()
    this.#opened = undefined
  }

  /** Writes all that is noted until the event loop continues. Never rejects: the next start detects missing entries. */
  #write(): Promise<void> {
    return (this.#writing ??= this.#writeLater())
  }

  async #writeLater(): Promise<void> {
    await yieldToLoop()
    this.#writing = undefined
    const changes = this.#changes
    this.#changes = new Map()
    if (changes.size > 0) this.#apply(changes)
  }

  #apply(changes: ReadonlyMap<string, NotedSummary | undefined>): void {
    try {
      writeAll(this.#open(), changes)
    } catch (error) {
      this.#deps.onFault(error)
      // What must be forgotten is not kept for lack of room.
      if (isDamaged(error) || changes.values().some((notedSummary) => !notedSummary)) this.#startOver()
    }
  }

  #open(): OpenedTable {
    if (this.#opened) return this.#opened
    const { path } = this.#deps
    closeSync(openSync(path, 'a', 0o600)) // SQLite would let others read it
    const database = new (loadSqlite().DatabaseSync)(path)
    try {
      database.exec(SETTINGS)
      if (database.prepare('PRAGMA user_version').get()?.['user_version'] !== FORMAT) database.exec(SCHEMA)
      return (this.#opened = { database, insert: database.prepare(INSERT), remove: database.prepare(DELETE) })
    } catch (error) {
      database.close()
      throw error
    }
  }

  #startOver(): void {
    try {
      this.#opened?.database.close()
      this.#opened = undefined
      rmSync(this.#deps.path, { force: true })
    } catch (error) {
      this.#deps.onFault(error)
    }
  }
}

function writeAll(
  { database, insert, remove }: OpenedTable,
  changes: ReadonlyMap<string, NotedSummary | undefined>,
): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    for (const [id, notedSummary] of changes) {
      if (notedSummary) insert.run(id, JSON.stringify(toEntry(notedSummary)))
      else remove.run(id)
    }
    database.exec('COMMIT')
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {
      // SQLite has done so itself.
    }
    throw error
  }
}

function parseEntries(text: string): Entry[] {
  const values: unknown[] = JSON.parse(`[${text}]`)
  return values.filter(isEntry)
}

/** Checked by hand: a schema takes longer than all other work on an entry, and there may be a hundred thousand. */
function isEntry(value: unknown): value is Entry {
  if (!Array.isArray(value) || value.length !== FIELDS.length) return false
  for (let at = 0; at < FIELDS.length; at++) {
    const field: unknown = value[at]
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const type = FIELDS[at]!
    const isRight = type.name === 'texts' ? isTexts(field) : typeof field === type.name
    if (!isRight && !(type.isNullable && field === null)) return false
  }
  return STATUSES.has(value[3]) && value.at(-1) === value[2]
}

const isTexts = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === 'string')

const fieldOf = (name: string, isNullable = false) => ({ name, isNullable })
const [NUMBER, TIME] = [fieldOf('number'), fieldOf('number', true)]
const [TEXT, OPTIONAL, BOOLEAN] = [fieldOf('string'), fieldOf('string', true), fieldOf('boolean')]
const TEXTS = fieldOf('texts', true)
const MORE = [
  OPTIONAL,
  OPTIONAL,
  OPTIONAL,
  TEXTS,
  TEXTS,
  TEXT,
  TEXT,
  OPTIONAL,
  TIME,
  BOOLEAN,
  NUMBER,
  OPTIONAL,
  OPTIONAL,
  TIME,
  TIME,
  NUMBER,
]
const FIELDS = [TEXT, NUMBER, NUMBER, TEXT, NUMBER, NUMBER, NUMBER, ...MORE]
const STATUSES: ReadonlySet<unknown> = new Set(Status.options)

function toEntry({ summary, stamp }: NotedSummary): Entry {
  const { id, status, lastSeq, createdAt, updatedAt, idempotency, preview, lastWords, isArchived, waiting } = summary
  const log = [id, stamp.size, stamp.mtimeMs, status, lastSeq, createdAt, updatedAt] as const
  const texts = [summary.title ?? null, summary.userId ?? null, summary.profile ?? null] as const
  const columns = [preview, lastWords, summary.model ?? null, summary.costUsd ?? null, isArchived, waiting] as const
  const keys = [idempotency?.key ?? null, idempotency?.bodyHash ?? null] as const
  const times = [summary.waitsSince ?? null, summary.deadline ?? null, stamp.mtimeMs] as const
  return [
    ...log,
    ...texts,
    listOrNull(summary.labels),
    listOrNull(Object.entries(summary.fields).flat()),
    ...columns,
    ...keys,
    ...times,
  ]
}

function fromEntry([id, size, mtimeMs, status, lastSeq, createdAt, updatedAt, ...rest]: Entry): NotedSummary {
  const [title, userId, profile, labels, fields, preview, lastWords, model, costUsd, isArchived, waiting, ...last] =
    rest
  const [key, bodyHash, waitsSince, deadline] = last
  const owner = { userId: userId ?? undefined, profile: profile ?? undefined }
  const texts = { title: title ?? undefined, ...owner, model: model ?? undefined }
  const foundPairs = { labels: labels ?? NO_LABELS, fields: fields ? inPairs(fields) : NO_FIELDS }
  const knownTexts = { ...texts, ...foundPairs, preview, lastWords, isArchived, waiting, costUsd: costUsd ?? undefined }
  const waits = { waitsSince: waitsSince ?? undefined, deadline: deadline ?? undefined }
  const idempotency = key !== null && bodyHash !== null ? { key, bodyHash } : undefined
  const summary = { id, status, lastSeq, createdAt, updatedAt, ...knownTexts, ...waits, idempotency }
  return { summary, stamp: { size, mtimeMs } }
}

/** Shared: most conversations have none. */
const [NO_LABELS, NO_FIELDS] = [[], {}] as const

const listOrNull = (texts: readonly string[]): readonly string[] | null => (texts.length > 0 ? texts : null)

const inPairs = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? '']] : [])))

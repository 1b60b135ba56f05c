/**
 * The small tables of the server in one SQLite database, `tables.db`. Its rows are the only copy of what they say.
 *
 * Writes are made in a thread, which commits all that wait together and syncs them: this thread never waits for the disk.
 * While that one does not run, reads are made here: nothing is locked then, and a look-up takes microseconds.
 */
import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { Problem } from '../../../contract/problem.ts'
import type { Database } from '../directory/sqlite.ts'
import { causeOfFailedWrite, errorFor, failureOf, loadSqlite } from '../directory/sqlite.ts'
import { shareNext } from '../../../lib/lazily.ts'
import type { Row, TableStep, Value } from './table-thread.ts'
import { TableThread } from './table-thread.ts'

/** How long a lock is waited for. Another server has it only in tests, where several are in one process. */
export const BUSY_MS = 5000

/** Opens a database that exists: without the mode, a missing one would be made again, empty. */
export const urlOf = (path: string): string => `${pathToFileURL(path).href}?mode=rw`

export const step = (sql: string, ...values: readonly Value[]): TableStep => ({ sql, values })

/** A thread that nobody needs takes 11 MB. Starting it again delays the first write after that, such as the first DELETE. */
const IDLE_MS = 30_000

export class Tables implements AsyncDisposable {
  readonly #path: string
  readonly #url: string
  /** Throws a `Problem` if another file has the name now: what is stored there was read by nobody. */
  readonly #requireSame: () => Promise<void>
  #reader: Database | undefined
  #thread: TableThread | undefined
  #idle: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  /** The database exists. */
  constructor(path: string) {
    this.#path = path
    this.#url = urlOf(path)
    // Numbers of inodes may be larger than a double holds exactly.
    const openedStats = statSync(path, { bigint: true })
    this.#requireSame = shareNext(async () => {
      const now = await stat(path, { bigint: true }).catch(() => undefined)
      if (now?.ino !== openedStats.ino || now.dev !== openedStats.dev) throw new ReplacedTables(path)
    })
  }

  async read(sql: string, ...values: readonly Value[]): Promise<readonly Row[]> {
    if (this.#thread) return (await this.write(step(sql, ...values)))[0] ?? []
    try {
      this.#reader ??= new (loadSqlite().DatabaseSync)(new URL(this.#url), { timeout: BUSY_MS })
      return this.#reader.prepare(sql).all(...values)
    } catch (error) {
      this.#reader?.close()
      this.#reader = undefined
      throw errorFor(failureOf(error))
    }
  }

  /** All steps or none, durably. Resolves to the rows of each. */
  async write(...steps: readonly TableStep[]): Promise<readonly (readonly Row[])[]> {
    await this.#requireSame()
    clearTimeout(this.#idle)
    if (this.#thread?.hasEnded) this.#thread = undefined
    const thread = (this.#thread ??= new TableThread(this.#url))
    try {
      return await thread.run(steps)
    } catch (error) {
      throw await causeOfFailedWrite(error, this.#path)
    } finally {
      if (thread.isIdle && this.#thread === thread) this.#endThreadLater()
    }
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#begun()
    await this.#thread?.settled()
    await this.#closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#begun()
    this.#reader?.close()
    this.#reader = undefined
    await this.#endThread()
  }

  /** Resolves when the thread has all that it was to write. */
  async #begun(): Promise<void> {
    await this.#requireSame().catch(() => {}) // the writes report it
  }

  #endThreadLater(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this.#endThread(), IDLE_MS).unref()
  }

  async #endThread(): Promise<void> {
    clearTimeout(this.#idle)
    if (this.#thread) this.#closed = this.#thread.close()
    this.#thread = undefined
    await this.#closed
  }
}

/** Another file has the name of the database, or none. */
export class ReplacedTables extends Problem {
  constructor(path: string) {
    super('storage_failed', `${path} was moved, removed or replaced while the server ran. Restart the server.`)
  }
}

/** Removes the oldest rows of the firehose, so that its table stops growing. The events stay in their logs. */
import type { PostgresDatabase } from './database.ts'

/** Readers may be behind by so many appends. A row of each takes about 100 bytes with its index. */
const KEPT_APPENDS = 10_000_000

const EVERY_MS = 10 * 60_000
/** Rows of one statement: a longer one would delay the appends. */
const MOST_ROWS = 10_000

export class FirehoseTrim implements AsyncDisposable {
  readonly #database: PostgresDatabase
  readonly #keptAppends: number
  readonly #timer: NodeJS.Timeout
  #isEnded = false
  #trimming: Promise<void> = Promise.resolve()

  constructor(database: PostgresDatabase, keptAppends = KEPT_APPENDS) {
    this.#database = database
    this.#keptAppends = keptAppends
    this.#timer = setInterval(() => void this.trim(), EVERY_MS).unref()
  }

  /** Trims the order. Never rejects: the next one continues. */
  trim(): Promise<void> {
    return (this.#trimming = this.#trimming.then(() => this.#trimAll()).catch(() => {})) // tried again
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#isEnded = true
    await this.#trimming
  }

  async #trimAll(): Promise<void> {
    for (let isMore = true; isMore && !this.#isEnded;) {
      const [row] = await this.#database.runOnce(TRIM, [this.#keptAppends, MOST_ROWS], 'cache')
      isMore = row?.['is_more'] === true
    }
  }
}

const TRIM = 'select trim_firehose($1, $2) as is_more'

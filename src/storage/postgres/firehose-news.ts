/** Tells the other instances that this one has appended, and learns it of them: at once as a rule, or else by a poll. */
import type { PostgresDatabase } from './database.ts'
import type { PostgresSession } from './session.ts'

/** Each notification takes a lock of the whole server when it commits: with one for each append, appends take three times as long. */
const ANNOUNCE_MS = 50

/** A notification is a hint, and can be lost with its connection. */
const POLL_MS = 1000

const STATEMENT_MS = 10_000

const CHANNEL = 'agent_server_firehose'

export class FirehoseNews implements Disposable {
  readonly #database: PostgresDatabase
  #timer: NodeJS.Timeout | undefined

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  /** Call it after each append. */
  announce(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#database.runOnce('select pg_notify($1, $2)', [CHANNEL, ''], 'cache').catch(() => {}) // others poll
    }, ANNOUNCE_MS).unref()
  }

  /** Calls `onNews` when any instance may have appended. Returns a function that ends it; no call comes after its promise. */
  listen(onNews: () => void): () => Promise<void> {
    const ending = new AbortController()
    let connecting: Promise<PostgresSession | undefined> | undefined
    const connect = async (former: PostgresSession | undefined) => {
      if (former && !former.isBroken) return former
      const session = await this.#database.connect().catch(() => {}) // the next poll tries again
      await session?.listen(CHANNEL, onNews, STATEMENT_MS).catch(() => {}) // it is broken then
      return session ?? undefined
    }
    const poll = () => {
      // Polls take turns: a connection may take longer than a poll.
      connecting = (connecting ?? Promise.resolve(undefined)).then((former) =>
        ending.signal.aborted ? former : connect(former),
      )
      onNews()
    }
    const timer = setInterval(poll, POLL_MS).unref()
    poll()
    return async () => {
      ending.abort()
      clearInterval(timer)
      await (await connecting)?.end()
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}

/**
 * The connections of one instance to its database, and what happens when they break: statements wait for the end of an
 * outage, and one that may still be executed is never repeated.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Problem } from '../../contract/problem.ts'
import { timerMs } from '../../lib/bounded-wait.ts'
import { Queue } from '../../lib/queue.ts'
import type { Backoff } from '../../lib/backoff.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { LostStatement, isOutage, toProblem } from './database-errors.ts'
import type { PostgresRow, SessionIdentity, PostgresSessionOptions } from './session.ts'
import { PostgresSession } from './session.ts'

export type DatabaseOptions = {
  /** `postgresql://user:password@host:5432/name?sslmode=verify-full`, with several hosts separated by commas. */
  readonly url: string
  /**
   * Leads to the same database without a pooler. Then `url` may lead to one that gives each transaction another connection:
   * only statements go there whose order does not depend on the end of a session.
   */
  readonly sessionUrl?: string | undefined
  /** How long an outage delays statements before they fail, in milliseconds. */
  readonly outageMs: number
  /** Called with the time of each statement, in milliseconds. */
  readonly onAnswered?: ((pool: PoolName, ms: number) => void) | undefined
}

/** A statement without an answer after this time counts as lost: the other side of its connection may be gone. */
const STATEMENT_MS = 60_000

/** How long the server may take to end a session, in milliseconds. */
const END_SESSION_MS = 5000

const BACKOFF: Backoff = { firstMs: 50, longestMs: 1000, jitterFrom: 0.75 }

/** The pools by what they are for: a long read must not delay an append, and caches are worth no wait for the disk. */
const POOLS = {
  append: { limit: 2 },
  other: { limit: 4 },
  cache: { limit: 1, parameters: { synchronous_commit: 'off' } },
} as const
export type PoolName = keyof typeof POOLS

/** The connections for writes without a pooler. */
const WRITERS = 2

export class PostgresDatabase implements AsyncDisposable {
  readonly #options: DatabaseOptions
  readonly #pools: Record<PoolName, Pool>
  /** Has the writes of the pool `other`. */
  readonly #writers: Pool
  readonly #closing = new AbortController()
  readonly #absence = new Absence()
  #refusal: Problem | undefined
  /** Called when a connection broke, and when there is one in its place: perhaps to another server. */
  onBroken: () => void = () => {}

  constructor(options: DatabaseOptions) {
    this.#options = options
    const { url, sessionUrl = url, onAnswered } = options
    const poolOf = (name: PoolName, target: string, limit: number = POOLS[name].limit) =>
      new Pool({
        urls: urlsOf(target),
        isPooled: target !== sessionUrl,
        ...POOLS[name],
        limit,
        absence: this.#absence,
        onBroken: () => !this.#closing.signal.aborted && this.onBroken(),
        onAnswered: (ms) => onAnswered?.(name, ms),
      })
    const other = poolOf('other', url)
    this.#pools = { append: poolOf('append', url), other, cache: poolOf('cache', sessionUrl) }
    this.#writers = url === sessionUrl ? other : poolOf('other', sessionUrl, WRITERS)
  }

  /** A new connection that is not shared. */
  connect(): Promise<PostgresSession> {
    const { url, sessionUrl = url } = this.#options
    return PostgresSession.connect({ urls: urlsOf(sessionUrl) })
  }

  /** A new connection through the pooler, if there is one. */
  connectPooled(): Promise<PostgresSession> | undefined {
    const { url, sessionUrl = url } = this.#options
    return url === sessionUrl ? undefined : PostgresSession.connect({ urls: urlsOf(url), isPooled: true })
  }

  /** Executes a statement that changes nothing. Rejects with a `Problem` if the outage is too long. */
  async read(text: string, values: readonly unknown[] = []): Promise<PostgresRow[]> {
    const outage = this.outage()
    for (;;) {
      try {
        return await this.#run(this.#pools.other, text, values)
      } catch (error) {
        await outage.wait(error)
      }
    }
  }

  /**
   * Executes a statement that has the same result if it is executed twice in succession. After a broken connection the
   * first execution is over before the second begins, so that it cannot undo what others have written since. Rejects as
   * `read` does.
   */
  async write(text: string, values: readonly unknown[], pool: PoolName = 'other'): Promise<PostgresRow[]> {
    const outage = this.outage()
    const lostSessions: SessionIdentity[] = []
    for (;;) {
      try {
        for (const identity of lostSessions.splice(0)) await this.#endSession(identity, lostSessions)
        const executing = pool === 'other' ? this.#writers : this.#pools[pool]
        return await this.#run(executing, text, values, (identity) => lostSessions.push(identity))
      } catch (error) {
        await outage.wait(error)
      }
    }
  }

  /** Executes a statement once. Rejects with a `LostStatement` if its outcome is unknown. */
  runOnce(text: string, values: readonly unknown[], pool: PoolName): Promise<PostgresRow[]> {
    return this.#run(this.#pools[pool], text, values)
  }

  /** Refuses each statement from now on with this problem, also one that waits for the end of an outage. */
  refuseAll(problem: Problem): void {
    this.#refusal = problem
  }

  /** Begins to count the time of an outage at its first error. */
  outage(): Outage {
    return new Outage(this.#options.outageMs, this.#absence, this.#closing.signal)
  }

  /** Ends all connections; statements that wait for the end of an outage fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all([...Object.values(this.#pools), this.#writers].map((pool) => pool.end()))
  }

  async #run(pool: Pool, ...statement: Parameters<Pool['run']>): Promise<PostgresRow[]> {
    if (this.#refusal) throw this.#refusal
    return await pool.run(...statement)
  }

  async #endSession(identity: SessionIdentity, lostSessions: SessionIdentity[]): Promise<void> {
    try {
      const { pid, startedAt } = identity
      const [foundRow] = await this.#pools.other.run(END_SESSION, [pid, startedAt, END_SESSION_MS])
      if (foundRow?.['ended'] === false) throw new LostStatement('The server does not end a session.')
    } catch (error) {
      lostSessions.push(identity)
      throw error
    }
  }
}

const END_SESSION = `
  select pg_terminate_backend(pid, $3) as ended from pg_stat_get_activity($1) where backend_start = $2::timestamptz`

/** The time since when no connection could be made: who comes late in a long outage does not wait as long again. */
class Absence {
  since = Infinity

  begin(): void {
    this.since = Math.min(this.since, performance.now())
  }

  end(): void {
    this.since = Infinity
  }
}

/** The wait of one caller for the end of an outage. */
export class Outage {
  readonly #limitMs: number
  readonly #absence: Absence
  readonly #signal: AbortSignal
  #since: number | undefined
  #errors = 0

  constructor(limitMs: number, absence: Absence, signal: AbortSignal) {
    this.#limitMs = limitMs
    this.#absence = absence
    this.#signal = signal
  }

  /**
   * Resolves when the next attempt should be made. Throws the `Problem` of the error if none should; with `onLimit`, an
   * outage that is too long calls it with that problem, each time, and the wait continues.
   */
  async wait(error: unknown, onLimit?: (problem: unknown) => void): Promise<void> {
    if (!isOutage(error)) throw toProblem(error)
    this.#since ??= performance.now()
    const since = Math.min(this.#since, this.#absence.since)
    if (this.#signal.aborted) throw toProblem(error)
    if (performance.now() - since > this.#limitMs) {
      if (!onLimit) throw toProblem(error)
      onLimit(toProblem(error))
    }
    try {
      await delay(timerMs(backoffMs(++this.#errors, BACKOFF)), undefined, { signal: this.#signal })
    } catch {
      throw toProblem(error) // closed meanwhile
    }
  }
}

type PoolOptions = PostgresSessionOptions & {
  readonly limit: number
  readonly absence: Absence
  readonly onBroken: () => void
  readonly onAnswered: (ms: number) => void
}

class Pool {
  readonly #options: PostgresSessionOptions
  readonly #onAnswered: PoolOptions['onAnswered']
  readonly #absence: Absence
  readonly #queue: Queue
  readonly #all = new Set<PostgresSession>()
  readonly #onBroken: PoolOptions['onBroken']
  #free: PostgresSession[] = []
  #hasLost = false

  constructor({ limit, absence, onBroken, onAnswered, ...options }: PoolOptions) {
    this.#options = options
    this.#onBroken = onBroken
    this.#onAnswered = onAnswered
    this.#absence = absence
    this.#queue = new Queue({ limit })
  }

  /** `onLost` is called before it rejects with a `LostStatement`. */
  async run(
    text: string,
    values: readonly unknown[],
    onLost?: (identity: SessionIdentity) => void,
  ): Promise<PostgresRow[]> {
    return await this.#queue.run(async () => {
      const session = await this.#take()
      try {
        const begin = performance.now()
        const rows = await session.run(text, values, STATEMENT_MS)
        this.#onAnswered(performance.now() - begin)
        return rows
      } catch (error) {
        if (error instanceof LostStatement && session.identity) onLost?.(session.identity)
        throw error
      } finally {
        if (session.isBroken) this.#drop(session)
        else this.#free.push(session)
      }
    })
  }

  async end(): Promise<void> {
    await Promise.all(Array.from(this.#all, (session) => session.end()))
    this.#free = []
  }

  async #take(): Promise<PostgresSession> {
    for (let free = this.#free.pop(); free; free = this.#free.pop()) {
      if (!free.isBroken) return free
      this.#drop(free)
    }
    try {
      const session = await PostgresSession.connect(this.#options)
      this.#absence.end()
      this.#all.add(session)
      session.onClosed(this.#onBroken)
      if (this.#hasLost) this.#onBroken()
      this.#hasLost = false
      return session
    } catch (error) {
      this.#absence.begin()
      throw error
    }
  }

  #drop(session: PostgresSession): void {
    this.#all.delete(session)
    this.#hasLost = true
  }
}

/** Returns a URL for each host; the driver knows one only. A password may contain commas. */
function urlsOf(url: string): string[] {
  const begin = url.indexOf('//') + 2
  const end = url.indexOf('/', begin)
  const authority = url.slice(begin, end === -1 ? undefined : end)
  const hosts = authority.slice(authority.lastIndexOf('@') + 1)
  const before = url.slice(0, begin) + authority.slice(0, authority.length - hosts.length)
  const after = end === -1 ? '' : url.slice(end)
  return hosts.split(',').map((host) => before + host + after)
}

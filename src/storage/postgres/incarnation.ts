/**
 * The right of one instance to use a database: a lock of a session, and a row. Several instances on one database are not
 * supported yet.
 */
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresDatabase } from './database.ts'
import { DatabaseError } from './database-errors.ts'
import type { PostgresSession } from './session.ts'

/** Any number that other programs are unlikely to use. */
const INSTANCE_LOCK = 7_236_841_103

const STATEMENT_MS = 10_000

/** How long the lock of an instance that has just ended may still be held, in milliseconds. */
const LOCK_WAIT_MS = 2000
const LOCK_EVERY_MS = 100

/** How often the counter of the incarnation is raised, in milliseconds. */
const RENEW_EVERY_MS = 3000

/** Locks the database until the session ends. Throws a `DatabaseError` if another instance uses it. */
export async function lockDatabase(session: PostgresSession): Promise<void> {
  const until = performance.now() + LOCK_WAIT_MS
  while (!(await tryLock(session))) {
    // The server notices the end of a killed process a moment later.
    if (performance.now() > until) throw await inUse(session)
    await delay(LOCK_EVERY_MS)
  }
}

/** Ends all others, and returns the number of this incarnation. Call it with the lock. */
export async function beginIncarnation(session: PostgresSession, serverVersion: string): Promise<number> {
  const values = [hostname(), process.pid, serverVersion]
  const [row] = await session.run(BEGIN, values, STATEMENT_MS)
  return Number(row?.['id'])
}

/**
 * Keeps the lock: takes it again on a new connection when its session has ended. Until then another instance may take it;
 * that ends this incarnation, which can write nothing any more.
 */
export class KeptIncarnation implements AsyncDisposable {
  readonly #database: PostgresDatabase
  readonly #number: number
  readonly #onFault: (error: unknown) => void
  readonly #timer: NodeJS.Timeout
  #session: PostgresSession
  #renewing: Promise<void> | undefined
  #isReported = false

  constructor(database: PostgresDatabase, session: PostgresSession, number: number, onFault: (error: unknown) => void) {
    this.#database = database
    this.#session = session
    this.#number = number
    this.#onFault = onFault
    this.#timer = setInterval(() => this.#renew(), RENEW_EVERY_MS).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#session.end()
    await this.#renewing
    // It may have connected meanwhile.
    await this.#session.end()
  }

  #renew(): void {
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined))
  }

  async #renewOnce(): Promise<void> {
    try {
      if (this.#session.isBroken) this.#session = await this.#database.connect()
      if (!(await tryLock(this.#session))) throw await inUse(this.#session)
      const [row] = await this.#session.run(RENEW, [this.#number], STATEMENT_MS)
      if (!row) throw new DatabaseError('Another instance has taken over the database. Restart this one.')
      this.#isReported = false
    } catch (error) {
      // Each outage once: the statements that wait report it as well.
      if (!this.#isReported) this.#onFault(error)
      this.#isReported = true
    }
  }
}

/** Resolves to true if this session has the lock, now or already. */
async function tryLock(session: PostgresSession): Promise<boolean> {
  const [held] = await session.run(LOCK, [INSTANCE_LOCK], STATEMENT_MS)
  return held?.['is_locked'] === true
}

async function inUse(session: PostgresSession): Promise<DatabaseError> {
  const [user] = await session.run(LAST, [], STATEMENT_MS).catch(() => [])
  const who = user
    ? ` (on ${String(user['host'])}, process ${String(user['pid'])}, since ${String(user['since'])})`
    : ''
  return new DatabaseError(
    `The database is in use by another instance of this server${who}. Stop that one, or give this one another database. The lock of a machine that was switched off ends after 25 seconds.`,
  )
}

const LOCK = `
  select case when exists (
    select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted
      and (classid::bigint << 32) | objid::bigint = $1 and objsubid = 1
  ) then true else pg_try_advisory_lock($1) end as is_locked`
const LAST = `
  select host, pid, to_char(started_at, 'YYYY-MM-DD HH24:MI:SS "UTC"') as since from incarnations
  where ended_at is null order by id desc limit 1`
const BEGIN = `
  with ended as (update incarnations set ended_at = now() where ended_at is null)
  insert into incarnations (host, pid, server_version) values ($1, $2, $3) returning id`
const RENEW = 'update incarnations set counter = counter + 1 where id = $1 and ended_at is null returning id'

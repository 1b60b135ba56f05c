/**
 * The right of one instance to use a database: a lock of a session, and a row. Several instances on one database are not
 * supported yet.
 */
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Availability } from '../availability.ts'
import type { PostgresDatabase } from './database.ts'
import { DatabaseError, takenOver } from './database-errors.ts'
import type { PostgresSession } from './session.ts'

/** Any number that other programs are unlikely to use. */
const INSTANCE_LOCK = 7_236_841_103

const STATEMENT_MS = 10_000

/** How long the lock of an instance that has just ended may still be held, in milliseconds. */
const LOCK_WAIT_MS = 2000
const LOCK_EVERY_MS = 100

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

type KeptIncarnationOptions = {
  readonly database: PostgresDatabase
  /** Has the lock. */
  readonly session: PostgresSession
  readonly number: number
  /** How long the database may be away before requests are refused, and how often it is asked; in milliseconds. */
  readonly outageMs: number
  readonly renewMs: number
  readonly onFault: (error: unknown) => void
}

/**
 * Keeps the lock: takes it again on a new connection when its session has ended. Until then another instance may take it;
 * that ends this incarnation permanently, and no statement is executed any more.
 */
export class KeptIncarnation implements Availability, AsyncDisposable {
  readonly #options: KeptIncarnationOptions
  readonly #timer: NodeJS.Timeout
  readonly #takenOver = new AbortController()
  #session: PostgresSession
  #renewing: Promise<void> | undefined
  #renewedAt = performance.now()
  #isReported = false

  constructor(options: KeptIncarnationOptions) {
    this.#options = options
    this.#session = options.session
    this.#timer = setInterval(() => this.#renew(), options.renewMs).unref()
  }

  get takenOver(): AbortSignal {
    return this.#takenOver.signal
  }

  readonly answers = (): boolean => performance.now() - this.#renewedAt <= this.#options.outageMs

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
      if (this.#session.isBroken) this.#session = await this.#options.database.connect()
      const hasLock = await tryLock(this.#session)
      const [row] = await this.#session.run(hasLock ? RENEW : FIND, [this.#options.number], STATEMENT_MS)
      if (!row) return await this.#giveUp()
      // Its former session may still have it: the database has not noticed yet that the connection broke.
      if (!hasLock) throw await inUse(this.#session)
      this.#isReported = false
      this.#renewedAt = performance.now()
    } catch (error) {
      // Each outage once: the statements that wait report it as well.
      if (!this.#isReported) this.#options.onFault(error)
      this.#isReported = true
    }
  }

  async #giveUp(): Promise<void> {
    clearInterval(this.#timer)
    const error = new DatabaseError(
      'Another server has taken over the database while the connection of this one was broken. This one stops, because two must not write. Give each server its own database.',
    )
    this.#options.database.refuseAll(takenOver(error))
    this.#takenOver.abort(error)
    // It may have the lock again.
    await this.#session.end()
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
const FIND = 'select from incarnations where id = $1 and ended_at is null'
const BEGIN = `
  with ended as (update incarnations set ended_at = now() where ended_at is null)
  insert into incarnations (host, pid, server_version) values ($1, $2, $3) returning id`
const RENEW = 'update incarnations set counter = counter + 1 where id = $1 and ended_at is null returning id'

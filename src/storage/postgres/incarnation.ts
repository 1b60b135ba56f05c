/**
 * The right of one instance to use a database: a lock of a session, and a row with a counter. An instance that is alone has
 * the lock for itself; those that share a database share it, and find out from the counters which of them have died.
 */
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import type { Availability } from '../availability.ts'
import type { RunLoad } from '../instances.ts'
import { RenewedLease } from '../lease/lease.ts'
import type { InstanceCounter, Observation } from './counter-watch.ts'
import { CounterWatch } from './counter-watch.ts'
import type { PostgresDatabase } from './database.ts'
import { DatabaseError, takenOver } from './database-errors.ts'
import type { NotedIncarnation } from './former-incarnation.ts'
import type { PostgresRow, PostgresSession } from './session.ts'

/** Any number that other programs are unlikely to use. */
const INSTANCE_LOCK = 7_236_841_103

const STATEMENT_MS = 10_000

/** How long the end of this instance may take to record, in milliseconds; without it others wait for the TTL. */
const END_MS = 2000

/** How long the lock of an instance that has just ended may still be held, in milliseconds. */
const LOCK_WAIT_MS = 2000
const LOCK_EVERY_MS = 100

/** The part of the TTL for which a renewal is valid; the rest is for stopping what runs: 2 of 10 seconds. */
const VALID = 0.8

/** Whether other instances may use the database at the same time. */
export type Sharing = 'alone' | 'shared'

/** Locks the database until the session ends. Throws a `DatabaseError` if another instance does not allow it. */
export async function lockDatabase(session: PostgresSession, sharing: Sharing): Promise<void> {
  const until = performance.now() + LOCK_WAIT_MS
  while (!(await tryLock(session, sharing))) {
    // The server notices the end of a killed process a moment later.
    if (performance.now() > until) throw await inUse(session)
    await delay(LOCK_EVERY_MS)
  }
}

/** Returns this incarnation; one that is alone ends all others. Call it with the lock. */
export async function beginIncarnation(
  session: PostgresSession,
  serverVersion: string,
  sharing: Sharing,
): Promise<NotedIncarnation> {
  const values = [hostname(), process.pid, serverVersion]
  const [row] = await session.run(sharing === 'alone' ? BEGIN_ALONE : BEGIN, values, STATEMENT_MS)
  return { id: Number(row?.['id']), startedAt: String(row?.['started_at']) }
}

type KeptIncarnationOptions = {
  readonly database: PostgresDatabase
  /** Has the lock. */
  readonly session: PostgresSession
  readonly number: number
  readonly sharing: Sharing
  /** How long the database may be away before requests are refused, and how often it is asked; in milliseconds. */
  readonly outageMs: number
  readonly renewMs: number
  /** An instance whose counter is unchanged for so long is dead, in milliseconds. */
  readonly ttlMs: number
  /** The time when the request that began it was sent. */
  readonly beganAt: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly onFault: (error: unknown) => void
  readonly onSuspended?: (() => void) | undefined
}

/**
 * Keeps the lock and raises the counter: takes the lock again on a new connection when its session has ended. Another
 * instance may end this incarnation permanently, when it takes the lock for itself or sees the counter unchanged for the
 * TTL; then no statement is executed any more.
 */
export class KeptIncarnation implements Availability, AsyncDisposable {
  readonly #options: KeptIncarnationOptions
  readonly #timer: NodeJS.Timeout
  readonly #takenOver = new AbortController()
  readonly #others: CounterWatch
  readonly lease: RenewedLease | undefined
  /** Stored with each renewal. */
  load: (() => RunLoad) | undefined
  #session: PostgresSession
  /** Leads through the pooler, if there is one. */
  #pooled: PostgresSession | undefined
  #renewing: Promise<void> | undefined
  /** The time when the last renewal that succeeded was begun. */
  #renewedAt: number
  #isReported = false

  constructor(options: KeptIncarnationOptions) {
    this.#options = options
    this.#session = options.session
    this.#others = new CounterWatch({ ttlMs: options.ttlMs })
    this.#renewedAt = options.beganAt
    const { beganAt, now, ttlMs, onSuspended } = options
    if (options.sharing === 'shared')
      this.lease = new RenewedLease({ validMs: ttlMs * VALID, beganAt, now, onSuspended })
    this.#timer = setInterval(() => void this.renew(), options.renewMs).unref()
  }

  get takenOver(): AbortSignal {
    return this.#takenOver.signal
  }

  /** A suspended instance executes nothing: requests are better sent to another one. */
  readonly answers = (): boolean =>
    this.#options.now() - this.#renewedAt <= this.#options.outageMs && (this.lease?.isHeld ?? true)

  /** Raises the counter, and ends the others that have died. Never rejects; a call during another one is that one. */
  renew(): Promise<void> {
    return (this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    if (this.#renewing) await settlesWithin(END_MS, this.#renewing)
    if (!this.#session.isBroken) await this.#session.run(END, [this.#options.number], END_MS).catch(() => {}) // others wait
    await this.#session.end()
    await this.#renewing
    // They may have connected meanwhile.
    await Promise.all([this.#session.end(), this.#pooled?.end()])
  }

  async #renewOnce(): Promise<void> {
    const { database, number, sharing, now, onFault } = this.#options
    try {
      if (this.#session.isBroken) this.#session = await database.connect()
      const sentAt = now()
      const outage = await this.#outageOfPooler()
      const askedAt = now()
      const load = this.load?.()
      const values = [INSTANCE_LOCK, number, outage === undefined, load?.active ?? 0, load?.limit ?? 0]
      const [row] = await this.#session.run(RENEW[sharing], values, STATEMENT_MS)
      const answeredAt = now()
      if (row?.['is_alive'] !== true) return await this.#giveUp()
      if (outage) throw outage
      // Its former session may still have it: the database has not noticed yet that the connection broke.
      if (row['is_locked'] !== true) throw await inUse(this.#session)
      this.#isReported = false
      this.#renewedAt = sentAt
      this.lease?.renew(sentAt)
      if (sharing === 'shared') await this.#endDead(row, { sentAt: askedAt, answeredAt })
    } catch (error) {
      // Each outage once: the statements that wait report it as well.
      if (!this.#isReported) onFault(error)
      this.#isReported = true
    }
  }

  /** An instance whose pooler is away stores nothing, whatever its session can do. Undefined if the pooler answers. */
  async #outageOfPooler(): Promise<Error | undefined> {
    try {
      if (!this.#pooled || this.#pooled.isBroken) this.#pooled = await this.#options.database.connectPooled()
      await this.#pooled?.run('select', [], STATEMENT_MS)
      return undefined
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }

  async #endDead(row: PostgresRow, observation: Observation): Promise<void> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the statement makes it
    const others = row['others'] as readonly InstanceCounter[]
    for (const dead of this.#others.observe(others, observation))
      await this.#session.run(END_DEAD, [dead.id, dead.counter, this.#options.number], STATEMENT_MS)
  }

  async #giveUp(): Promise<void> {
    clearInterval(this.#timer)
    const error = new DatabaseError(
      this.#options.sharing === 'alone'
        ? 'Another server has taken over the database while the connection of this one was broken. This one stops, because two must not write. Give each server its own database.'
        : 'Another instance has ended this one, because it did not reach the database in time. This one stops; start it again.',
    )
    this.#options.database.refuseAll(takenOver(error))
    this.lease?.lose(error)
    this.#takenOver.abort(error)
    // It may have the lock again.
    await Promise.all([this.#session.end(), this.#pooled?.end()])
  }
}

/** Resolves to true if this session has the lock, now or already. */
async function tryLock(session: PostgresSession, sharing: Sharing): Promise<boolean> {
  const [lockRow] = await session.run(sharing === 'alone' ? LOCK_ALONE : LOCK_SHARED, [INSTANCE_LOCK], STATEMENT_MS)
  return lockRow?.['is_locked'] === true
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

const lockWith = (mode: string, lock: string) => `
  select case when exists (
    select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted and mode = '${mode}'
      and (classid::bigint << 32) | objid::bigint = $1 and objsubid = 1
  ) then true else ${lock}($1) end as is_locked`
const LOCK_ALONE = lockWith('ExclusiveLock', 'pg_try_advisory_lock')
const LOCK_SHARED = lockWith('ShareLock', 'pg_try_advisory_lock_shared')
const LAST = `
  select host, pid, to_char(started_at, 'YYYY-MM-DD HH24:MI:SS "UTC"') as since from incarnations
  where ended_at is null order by id desc limit 1`
const BEGIN = 'insert into incarnations (host, pid, server_version) values ($1, $2, $3) returning id, started_at::text'
const BEGIN_ALONE = `with ended as (update incarnations set ended_at = now() where ended_at is null) ${BEGIN}`
// One statement: of a database that answers slowly, several answers would arrive after the lease has ended.
const renewWith = (lock: string) => `
  with locked as materialized (${lock}),
    renewed as (
      update incarnations set counter = counter + 1, active_runs = $4, run_limit = $5
      where id = $2 and ended_at is null and $3 and (select is_locked from locked)
      returning id
    )
  select is_locked,
    -- Another instance may end this one between the begin of the statement and the update, which sees that.
    case when $3 and is_locked then exists (select from renewed)
      else exists (select from incarnations where id = $2 and ended_at is null) end as is_alive,
    (select coalesce(json_agg(json_build_object('id', id, 'counter', counter)), '[]')
      from incarnations where id <> $2 and ended_at is null) as others
  from locked`
const RENEW = { alone: renewWith(LOCK_ALONE), shared: renewWith(LOCK_SHARED) }
const END = 'update incarnations set ended_at = now() where id = $1 and ended_at is null'
// One that has been ended itself meanwhile ends nobody.
const END_DEAD = `
  update incarnations set ended_at = now() where id = $1 and counter = $2 and ended_at is null and not has_ended($3)`

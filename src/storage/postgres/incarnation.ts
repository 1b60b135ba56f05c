/**
 * The right of one instance to use a database: a lock of its session, and a row. Several instances on one database are not
 * supported yet.
 */
import { hostname } from 'node:os'
import { DatabaseError } from './database-errors.ts'
import type { Session } from './session.ts'

/** Any number that other programs are unlikely to use. */
const INSTANCE_LOCK = 7_236_841_103

const STATEMENT_MS = 10_000

/** Locks the database until the session ends. Throws a `DatabaseError` if another instance uses it. */
export async function lockDatabase(session: Session): Promise<void> {
  const [found] = await session.run('select pg_try_advisory_lock($1) as is_locked', [INSTANCE_LOCK], STATEMENT_MS)
  if (found?.['is_locked'] === true) return
  const [user] = await session.run(LAST, [], STATEMENT_MS).catch(() => [])
  const who = user
    ? ` (on ${String(user['host'])}, process ${String(user['pid'])}, since ${String(user['since'])})`
    : ''
  throw new DatabaseError(
    `The database is in use by another instance of this server${who}. Stop that one, or give this one another database. The lock of a machine that was switched off ends after 25 seconds.`,
  )
}

/** Ends all others, and returns the number of this incarnation. Call it with the lock. */
export async function beginIncarnation(session: Session, serverVersion: string): Promise<number> {
  const values = [hostname(), process.pid, serverVersion]
  const [row] = await session.run(BEGIN, values, STATEMENT_MS)
  return Number(row?.['id'])
}

const LAST = `
  select host, pid, to_char(started_at, 'YYYY-MM-DD HH24:MI:SS "UTC"') as since from incarnations
  where ended_at is null order by id desc limit 1`
const BEGIN = `
  with ended as (update incarnations set ended_at = now() where ended_at is null)
  insert into incarnations (host, pid, server_version) values ($1, $2, $3) returning id`

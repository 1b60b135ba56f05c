/** The first connection of a process: waits for a database that starts, and refuses one that cannot be used. */
import { DatabaseError, mayConnectLater } from './database-errors.ts'
import type { PostgresDatabase } from './database.ts'
import type { PostgresSession } from './session.ts'

const STATEMENT_MS = 10_000

/** How often two sessions of a pooler are compared: other clients may use its connections meanwhile. */
const COMPARISONS = 20

/**
 * Makes the first connection of a process. With `onAway`, it waits while the database has not started, as requests do in an
 * outage, and first calls that with the reason. Throws a `DatabaseError`.
 */
export async function connectFirst(
  database: PostgresDatabase,
  onAway?: (error: unknown) => void,
): Promise<PostgresSession> {
  const outage = database.outage()
  for (let isReported = false; ; isReported = true) {
    try {
      return await requireSessions(database, await database.connect())
    } catch (error) {
      if (error instanceof DatabaseError) throw error
      if (!onAway || !mayConnectLater(error)) throw unusable(error)
      if (!isReported) onAway(error)
      await outage.wait(error).catch(() => {
        throw unusable(error)
      })
    }
  }
}

function unusable(cause: unknown): DatabaseError {
  const why = cause instanceof Error ? cause.message || cause.name : String(cause)
  return new DatabaseError(`The database of OPENHANDS_DATABASE_URL cannot be used: ${why}.`, { cause })
}

/**
 * Returns the session. Throws a `DatabaseError` if each transaction has another connection of a pooler: a lock or a setting of
 * the session would be that of other clients.
 */
async function requireSessions(database: PostgresDatabase, session: PostgresSession): Promise<PostgresSession> {
  if (session.isDirect) return session
  const other = await database.connect()
  try {
    const backends = await Promise.all([backendOf(session), backendOf(other)])
    for (let times = 0; times < COMPARISONS; times++) {
      // One after the other: a pooler that does not keep them gives both the connection that is free.
      const [own, others] = [await backendOf(session), await backendOf(other)]
      if (own !== backends[0] || others !== backends[1] || own === others) throw new DatabaseError(POOLED)
    }
    return session
  } catch (error) {
    await session.end()
    throw error
  } finally {
    await other.end()
  }
}

async function backendOf(session: PostgresSession): Promise<number> {
  const [row] = await session.run('select pg_backend_pid() as pid', [], STATEMENT_MS)
  return Number(row?.['pid'])
}

const POOLED =
  'OPENHANDS_DATABASE_URL leads to a pooler that gives each transaction another connection, such as PgBouncer in transaction mode. Set OPENHANDS_DATABASE_SESSION_URL to the database itself.'

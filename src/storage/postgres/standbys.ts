/** Whether the standbys of a database may lack what it has acknowledged. */
import type { PostgresSession } from './session.ts'

const STATEMENT_MS = 10_000

/**
 * Returns a warning if the database has standbys, and none of them is synchronous; undefined otherwise, also if this user
 * cannot see that.
 */
export async function warningOfStandbys(session: PostgresSession): Promise<string | undefined> {
  const [row] = await session.run(ARE_ASYNCHRONOUS, [], STATEMENT_MS)
  if (row?.['are_asynchronous'] !== true) return undefined
  return 'no standby of the database is synchronous: a failover can lose events that were acknowledged; set synchronous_standby_names'
}

// The state of a standby is null for users without the role pg_monitor.
const ARE_ASYNCHRONOUS = `
  select bool_and(sync_state is not null and sync_state not in ('sync', 'quorum')) as are_asynchronous
  from pg_stat_replication`

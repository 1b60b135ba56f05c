/**
 * The tables and functions of the database, as a list of migrations. A migration is never changed once it was released: a
 * new one is added.
 */
import { DatabaseError } from './database-errors.ts'
import type { PostgresSession } from './session.ts'
import { FIRST_MIGRATION } from './first-migration.ts'

const MIGRATIONS: readonly string[] = [FIRST_MIGRATION]

/** Two instances may start at the same time. Any number that other programs are unlikely to use. */
const MIGRATION_LOCK = 7_236_841_101

/** A migration of large tables takes its time, in milliseconds. */
const MIGRATION_MS = 60 * 60_000

/** Brings the database to the version of this server. Throws a `DatabaseError` if a newer server has written it. */
export async function migrate(session: PostgresSession): Promise<void> {
  const run = (text: string, values: readonly unknown[] = []) => session.run(text, values, MIGRATION_MS)
  await run('select pg_advisory_lock($1)', [MIGRATION_LOCK])
  try {
    await run('create table if not exists schema_version (version integer not null)')
    const [found] = await run('select max(version) as version from schema_version')
    const version = Number(found?.['version'] ?? 0)
    if (version > MIGRATIONS.length)
      throw new DatabaseError(
        `The database has version ${version}, which a newer server has written; this one knows version ${MIGRATIONS.length}. Start a newer server, or restore a backup of the database.`,
      )
    for (const [at, migration] of MIGRATIONS.entries())
      // One script is one transaction.
      if (at >= version)
        await run(
          `begin; ${migration}; delete from schema_version; insert into schema_version values (${at + 1}); commit`,
        )
  } finally {
    if (!session.isBroken) {
      await run('rollback')
      await run('select pg_advisory_unlock($1)', [MIGRATION_LOCK])
    }
  }
}

/**
 * The tables and functions of the database, as a list of migrations. A migration is never changed once it was released: a
 * new one is added.
 */
import { DatabaseError } from './database-errors.ts'
import type { PostgresSession } from './session.ts'
import { FIFTH_MIGRATION } from './fifth-migration.ts'
import { FIRST_MIGRATION } from './first-migration.ts'
import { SIXTH_MIGRATION } from './sixth-migration.ts'
import { SECOND_MIGRATION } from './second-migration.ts'
import { THIRD_MIGRATION } from './third-migration.ts'
import { FOURTH_MIGRATION } from './fourth-migration.ts'
import { SEVENTH_MIGRATION } from './seventh-migration.ts'
import { EIGHTH_MIGRATION } from './eighth-migration.ts'
import { ELEVENTH_MIGRATION } from './eleventh-migration.ts'
import { NINTH_MIGRATION } from './ninth-migration.ts'
import { TENTH_MIGRATION } from './tenth-migration.ts'
import { TWELFTH_MIGRATION } from './twelfth-migration.ts'

/** Names the database in the data directories that were used with it. A copy of the database keeps it. */
const IDENTITY_MIGRATION = `
  create table database_identity (id uuid not null default gen_random_uuid());
  insert into database_identity default values`

const MIGRATIONS: readonly string[] = [
  FIRST_MIGRATION,
  IDENTITY_MIGRATION,
  SECOND_MIGRATION,
  THIRD_MIGRATION,
  FOURTH_MIGRATION,
  FIFTH_MIGRATION,
  SIXTH_MIGRATION,
  SEVENTH_MIGRATION,
  EIGHTH_MIGRATION,
  NINTH_MIGRATION,
  TENTH_MIGRATION,
  ELEVENTH_MIGRATION,
  TWELFTH_MIGRATION,
]

/** Two instances may start at the same time. Any number that other programs are unlikely to use. */
const MIGRATION_LOCK = 7_236_841_101

/** A migration of large tables takes its time, in milliseconds. */
const MIGRATION_MS = 60 * 60_000

const IDENTITY_MS = 60_000

/** Brings the database to the version of this server. Throws a `DatabaseError` if a newer server has written it. */
export async function migrate(session: PostgresSession): Promise<void> {
  const run = (text: string, values: readonly unknown[] = []) => session.run(text, values, MIGRATION_MS)
  await run('select pg_advisory_lock($1)', [MIGRATION_LOCK])
  try {
    await run('create table if not exists schema_version (version integer not null)')
    const [foundRow] = await run('select max(version) as version from schema_version')
    const version = Number(foundRow?.['version'] ?? 0)
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

/** Returns the UUID of the database; undefined before its migration. */
export async function readIdentity(session: PostgresSession): Promise<string | undefined> {
  const run = (text: string) => session.run(text, [], IDENTITY_MS)
  const [table] = await run("select to_regclass('database_identity') is not null as is_there")
  if (table?.['is_there'] !== true) return undefined
  const [row] = await run('select id from database_identity')
  return row && String(row['id'])
}

/** As `readIdentity`, after the migrations. Throws a `DatabaseError` if a row was removed by hand. */
export async function requireIdentity(session: PostgresSession): Promise<string> {
  const id = await readIdentity(session)
  if (id === undefined) throw new DatabaseError('The database has no identity. Restore a backup of it.')
  return id
}

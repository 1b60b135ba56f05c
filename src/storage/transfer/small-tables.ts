/** The tables of the server in files and in a database: API keys, profiles, deletions, shared workdirs, and marks. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { MarkFiles } from '../files/directory/mark-files.ts'
import { CredentialRows } from '../files/tables/credential-rows.ts'
import { DeletionRows } from '../files/tables/deletion-rows.ts'
import { openTables } from '../files/tables/open-tables.ts'
import type { Tables } from '../files/tables/tables.ts'
import { step } from '../files/tables/tables.ts'
import { CredentialsTable } from '../postgres/credentials-table.ts'
import type { PostgresDatabase } from '../postgres/database.ts'
import type { PostgresRow } from '../postgres/session.ts'
import type { CredentialTable } from '../storage.ts'

/** Rows in one statement. */
const CHUNK = 5000
/** Marks that are made at the same time: they share their syncs. */
const MARKS_AT_ONCE = 64
const KINDS = ['active', 'due'] as const

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** Returns the ids of deleted conversations. */
export async function importDeletions(
  database: PostgresDatabase,
  tables: Tables,
  directory: string,
): Promise<Set<string>> {
  const deletions = new DeletionRows(tables, join(directory, 'deletions'))
  const ids = await deletions.ids()
  for (const part of chunksOf(ids)) await database.write(DELETIONS, [part])
  for (const part of chunksOf(await deletions.keys(0)))
    await database.write(CREATION_KEYS, [
      part.map(({ key }) => key),
      part.map(({ bodyHash }) => bodyHash),
      part.map(({ id }) => id),
      part.map(({ at }) => at),
      part.map(({ at }) => Date.parse(at)),
    ])
  return new Set(ids)
}

/** Returns false if the database has other API keys. */
export async function importApiKeys(database: PostgresDatabase, tables: Tables): Promise<boolean> {
  const keys = await tables.read('SELECT id, value, used_at FROM api_keys ORDER BY number')
  const columns = [keys.map(({ id }) => id), keys.map(({ value }) => value), keys.map((key) => textOf(key['used_at']))]
  await database.write(API_KEYS, columns)
  const [version] = await tables.read("SELECT number FROM versions WHERE name = 'api_keys'")
  await database.write('update api_key_version set version = greatest(version, $1)', [version?.['number']])
  const storedRows = await database.read('select id, value from api_keys order by number')
  const listOf = (rows: readonly PostgresRow[]) => JSON.stringify(rows.map(({ id, value }) => [id, value]))
  return listOf(storedRows) === listOf(keys)
}

/** A profile of the database with the same name is replaced. */
export async function importProfiles(database: PostgresDatabase, tables: Tables): Promise<void> {
  const [profilesTable] = await tables.read("SELECT 1 FROM sqlite_master WHERE name = 'profiles'")
  if (profilesTable) await copyProfiles(new CredentialRows(tables, 'profiles'), profilesIn(database))
}

const profilesIn = (database: PostgresDatabase) => new CredentialsTable(database, 'profiles', 'profile_version')

async function copyProfiles(from: CredentialTable, to: CredentialTable): Promise<void> {
  for (const { id, value } of (await from.read()).keys) await to.change(await to.version(), id, value)
}

export async function importWorkdirsAndMarks(database: PostgresDatabase, tables: Tables, directory: string) {
  const sharedRows = await tables.read('SELECT workdir, id FROM shared_workdirs')
  for (const part of chunksOf(sharedRows))
    await database.write(SHARED_WORKDIRS, [part.map((row) => row['workdir']), part.map(({ id }) => id)])
  for (const kind of KINDS) {
    const ids = await new MarkFiles(join(directory, kind)).ids().catch(() => [])
    // A former import may have been interrupted, and others marked since.
    await database.write(MARKS, [kind, ids])
  }
}

/** Makes `tables.db` and the marks of the directory; there are none yet. */
export async function exportTables(database: PostgresDatabase, directory: string): Promise<void> {
  await makeDirectories(join(directory, 'deletions'), 0o700)
  await using tables = await openTables(directory, { format: undefined, raiseFormat: () => Promise.resolve() })
  const put = async (text: string, columns: readonly string[], sql: string) => {
    for (const part of chunksOf(await database.read(text)))
      await tables.write(...part.map((row) => step(sql, ...columns.map((name) => textOf(row[name])))))
  }
  await put(ALL_KEYS, ['id', 'value', 'used_at'], 'INSERT INTO api_keys (id, value, used_at) VALUES (?, ?, ?)')
  await put(ALL_DELETIONS, ['id', 'key', 'body_hash', 'used_at'], 'INSERT INTO deletions VALUES (?, ?, ?, ?)')
  await put('select workdir, conversation_id as id from shared_workdirs', ['workdir', 'id'], PUT_WORKDIR)
  const [row] = await database.read('select version from api_key_version')
  await tables.write(step("UPDATE versions SET number = ? WHERE name = 'api_keys'", Number(row?.['version'])))
  await copyProfiles(profilesIn(database), new CredentialRows(tables, 'profiles'))
  for (const kind of KINDS) await exportMarks(database, kind, join(directory, kind))
}

const PUT_WORKDIR = 'INSERT INTO shared_workdirs VALUES (?, ?) ON CONFLICT DO NOTHING'

async function exportMarks(database: PostgresDatabase, kind: string, directory: string): Promise<void> {
  await makeDirectories(directory, 0o700)
  const rows = await database.read('select conversation_id as id from marks where kind = $1', [kind])
  const marks = new MarkFiles(directory)
  await mapBounded(rows, MARKS_AT_ONCE, ({ id }) => marks.set(String(id)))
}

function chunksOf<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / CHUNK)
  return Array.from({ length: count }, (_, i) => items.slice(i * CHUNK, (i + 1) * CHUNK))
}

/** Returns true if the directory has a log, or the remains of a conversation. */
export async function hasConversations(directory: string): Promise<boolean> {
  return (await readdir(join(directory, 'sessions')).catch(() => [])).length > 0
}

const DELETIONS = 'insert into deletions (conversation_id) select * from unnest($1::uuid[]) on conflict do nothing'
const CREATION_KEYS = `
  insert into creation_keys select * from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bigint[])
  on conflict do nothing`
const API_KEYS = `
  insert into api_keys (id, value, used_at)
  select k.id, k.value, k.used_at from unnest($1::text[], $2::text[], $3::text[]) with ordinality k(id, value, used_at, n)
  order by k.n on conflict (id) do nothing`
const SHARED_WORKDIRS = `
  insert into shared_workdirs select * from unnest($1::text[], $2::uuid[]) on conflict do nothing`
const MARKS = `
  with removed as (delete from marks where kind = $1 and conversation_id <> all($2::uuid[]))
  insert into marks select $1, id from unnest($2::uuid[]) id on conflict do nothing`
const ALL_KEYS = 'select id, value, used_at from api_keys order by number'
const ALL_DELETIONS = `
  select d.conversation_id as id, k.key, k.body_hash, k.used_at
  from deletions d left join creation_keys k on k.conversation_id = d.conversation_id`

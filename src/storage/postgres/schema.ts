/**
 * The tables and functions of the database, as a list of migrations. A migration is never changed once it was released: a
 * new one is added.
 */
import type { PostgresDatabase } from './database.ts'
import { DatabaseError } from './database-errors.ts'
import type { PostgresSession } from './session.ts'
import { FIFTH_MIGRATION } from './fifth-migration.ts'
import { FIRST_MIGRATION } from './first-migration.ts'
import { SIXTH_MIGRATION } from './sixth-migration.ts'
import { THIRD_MIGRATION } from './third-migration.ts'
import { SEVENTH_MIGRATION } from './seventh-migration.ts'

/** Names the database in the data directories that were used with it. A copy of the database keeps it. */
const IDENTITY_MIGRATION = `
  create table database_identity (id uuid not null default gen_random_uuid());
  insert into database_identity default values`

/** Workdirs are named as in the tables of files, so that both can be copied to each other. */
const SECOND_MIGRATION = `
update shared_workdirs set workdir = encode(sha256(convert_to(workdir, 'UTF8')), 'hex')`

/** Each instance has an address at which the others reach it. */
const FOURTH_MIGRATION = 'alter table incarnations add column address text'

/** Logins are stored as API keys are. */
const EIGHTH_MIGRATION = `
create table logins (
  id text primary key,
  number bigint not null generated always as identity,
  value text not null,
  used_at text
);
create table login_version (
  version bigint not null,
  changed_by uuid
);
insert into login_version values (1)`

/** What each answer of a model took. It has no reference to the conversations, because it stays without them. */
const NINTH_MIGRATION = `
create table usage_conversations (
  id uuid primary key,
  through_seq bigint not null,
  user_id text,
  labels text[] not null
);
create table usage_answers (
  conversation_id uuid not null,
  at bigint not null,
  seq bigint not null,
  model text not null,
  input_tokens double precision not null,
  output_tokens double precision not null,
  cached_tokens double precision not null,
  cache_write_tokens double precision not null,
  cost_usd double precision,
  primary key (at, conversation_id, seq)
)`

/** The words of events, for the search. They are made again from the events. */
const TENTH_MIGRATION = `
create table search_heads (
  conversation_id uuid primary key references conversations on delete cascade,
  seq bigint not null
);
create table search_words (
  conversation_id uuid not null references conversations on delete cascade,
  seq bigint not null,
  number bigint not null generated always as identity,
  at bigint not null,
  words tsvector not null,
  primary key (conversation_id, seq)
);
create index search_words_words on search_words using gin (words)`

/** Profiles are stored as API keys are. */
const ELEVENTH_MIGRATION = `
create table profiles (
  id text primary key,
  number bigint not null generated always as identity,
  value text not null,
  used_at text
);
create table profile_version (
  version bigint not null,
  changed_by uuid
);
insert into profile_version values (1)`

/** The idempotency keys of creates, so that one of several instances executes each. */
const TWELFTH_MIGRATION = `
create table creation_claims (
  key text primary key,
  body_hash text not null,
  -- It exists when the request has succeeded.
  conversation_id uuid not null,
  owner bigint not null,
  at timestamptz not null default now()
);
create index creation_claims_at on creation_claims (at)`

/** Stream tickets of all instances. They are worth no log: after a crash of the database clients request new ones. */
const THIRTEENTH_MIGRATION = `
create unlogged table stream_tickets (
  hash text primary key,
  number bigint not null generated always as identity,
  holder text not null,
  value text not null,
  expires_at timestamptz not null,
  -- The request that has used it, so that a repeated one is recognised.
  taken_by uuid
);
create index stream_tickets_holder on stream_tickets (holder, number);
create index stream_tickets_expires_at on stream_tickets (expires_at)`

/** What runs at each instance, so that a full one leaves conversations to others. */
const FOURTEENTH_MIGRATION = `
alter table incarnations
  add column active_runs integer not null default 0,
  -- 0: not known.
  add column run_limit integer not null default 0`

/** The replays of all instances. An id of a fork is stored before the fork exists. */
const FIFTEENTH_MIGRATION = `
create table replays (
  id uuid primary key,
  owner bigint not null,
  forks uuid[] not null,
  key text
);
create index replays_key on replays (key)`

/** An instance reads the list of all conversations in parts, in this order. */
const SIXTEENTH_MIGRATION = 'create index conversations_created_at on conversations (created_at, id)'

/** Replays are in the database, so that each instance shows all, and continues those of one that has ended. */
const SEVENTEENTH_MIGRATION = `
alter table replays add column record text;
create table replay_keys (
  key text primary key,
  replay_id uuid not null,
  at timestamptz not null default now()
);
create index replay_keys_at on replay_keys (at);
create index replays_forks on replays using gin (forks)`

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
  THIRTEENTH_MIGRATION,
  FOURTEENTH_MIGRATION,
  FIFTEENTH_MIGRATION,
  SIXTEENTH_MIGRATION,
  SEVENTEENTH_MIGRATION,
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

/** Does what `readIdentity` does, after the migrations. Throws a `DatabaseError` if a row was removed by hand. */
export async function requireIdentity(session: PostgresSession): Promise<string> {
  const id = await readIdentity(session)
  if (id === undefined) throw new DatabaseError('The database has no identity. Restore a backup of it.')
  return id
}

/** Throws a `DatabaseError` unless the database has this identity, also where a pooler leads to it. */
export async function requireSameDatabase(database: PostgresDatabase, identity: string): Promise<void> {
  const [table] = await database.read("select to_regclass('database_identity') is not null as is_there")
  const [row] = table?.['is_there'] === true ? await database.read('select id from database_identity') : []
  if (row?.['id'] === identity) return
  throw new DatabaseError('OPENHANDS_DATABASE_URL and OPENHANDS_DATABASE_SESSION_URL lead to different databases.')
}

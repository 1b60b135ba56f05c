/** A later version of the tables: the idempotency keys of creates, so that one of several instances executes each. */

export const TWELFTH_MIGRATION = `
create table creation_claims (
  key text primary key,
  body_hash text not null,
  -- It exists when the request has succeeded.
  conversation_id uuid not null,
  owner bigint not null,
  at timestamptz not null default now()
);
create index creation_claims_at on creation_claims (at)`

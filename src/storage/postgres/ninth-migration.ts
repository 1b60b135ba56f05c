/** A later version of the tables: what each answer of a model took. No reference to the conversations: it stays without them. */

export const NINTH_MIGRATION = `
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

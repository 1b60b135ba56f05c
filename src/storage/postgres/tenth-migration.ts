/** A later version of the tables: the words of events, for the search. They are made again from the events. */

export const TENTH_MIGRATION = `
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

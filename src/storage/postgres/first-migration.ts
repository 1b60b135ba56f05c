/** Version 1 of the tables. Released: it does not change any more. */

/** Numbers of advisory locks of the firehose begin with these 16 bits, so that no other program uses them. */
export const FIREHOSE_LOCKS = 0x4153

export const FIRST_MIGRATION = `
-- Each start of a server is an incarnation. One that has ended can append nothing.
create table incarnations (
  id bigint generated always as identity primary key,
  started_at timestamptz not null default now(),
  host text not null,
  pid integer not null,
  server_version text not null,
  counter bigint not null default 0,
  ended_at timestamptz
);

-- Never repeats, also not for a conversation that was removed and created again.
create sequence epochs;

create table conversations (
  id uuid primary key,
  created_at timestamptz not null default now(),
  -- The request that has reserved the id or created the log, so that a repeated one is recognised.
  reserved_by uuid,
  created_by uuid,
  is_copying boolean not null default false,
  has_log boolean not null default false,
  owner bigint,
  epoch bigint not null default nextval('epochs'),
  head bigint not null default 0,
  -- Unix time of the last event, in milliseconds.
  last_at bigint not null default 0,
  -- Closed at rest: its next owner has nothing to recover.
  is_released boolean not null default false
);

create table events (
  conversation_id uuid not null,
  seq bigint not null,
  at bigint not null,
  type text not null,
  source text not null,
  json text not null,
  primary key (conversation_id, seq)
) partition by hash (conversation_id);

-- Not every build of PostgreSQL has it.
do $do$ begin
  alter table events alter column json set compression lz4;
exception when feature_not_supported then null;
end $do$;

do $do$ begin
  for i in 0 .. 15 loop
    execute format('create table events_%s partition of events for values with (modulus 16, remainder %s)', i, i);
  end loop;
end $do$;

-- One row for each append, in an order that readers can rely on: see append_events.
create sequence firehose_positions;
create table firehose (
  position bigint primary key default nextval('firehose_positions'),
  conversation_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null
);

create table documents (
  conversation_id uuid not null references conversations on delete cascade,
  name text not null,
  value text not null,
  primary key (conversation_id, name)
);

create table commands (
  conversation_id uuid not null references conversations on delete cascade,
  id text not null,
  key_hash text,
  record text not null,
  primary key (conversation_id, id)
);

create table marks (
  kind text not null,
  conversation_id uuid not null,
  primary key (kind, conversation_id)
);

create table deletions (
  conversation_id uuid primary key,
  deleted_at timestamptz not null default now()
);

create table creation_keys (
  key text primary key,
  body_hash text not null,
  conversation_id uuid not null,
  used_at text not null,
  used_at_ms bigint not null
);

create table shared_workdirs (
  workdir text not null,
  conversation_id uuid not null,
  primary key (workdir, conversation_id)
);

create table summaries (
  conversation_id uuid primary key,
  last_seq bigint not null,
  format integer not null,
  value text not null
);

create table api_keys (
  id text primary key,
  number bigint not null generated always as identity,
  value text not null,
  used_at text
);

-- One row: the number of changes of api_keys, and the request of the last one.
create table api_key_version (
  version bigint not null,
  changed_by uuid
);
insert into api_key_version values (1);

create table data_keys (
  number integer primary key,
  sealed text not null
);

-- Appends the events of several conversations, for each all or none. An entry is stored if its conversation has this
-- owner, epoch and head. Returns for each entry whether it was, and what the conversation has now.
create function append_events(
  by_owner bigint, ids uuid[], epochs bigint[], heads bigint[], counts bigint[], last_ats bigint[],
  entries integer[], seqs bigint[], ats bigint[], types text[], sources text[], jsons text[]
) returns table (is_stored boolean, owner_now bigint, epoch_now bigint, head_now bigint)
language plpgsql as $function$
declare
  stored bigint[];
begin
  -- In the order of the ids, so that two of these never wait for each other.
  perform from conversations c where c.id = any(ids) order by c.id for update;
  -- A reader knows from the lock that positions above this value may still appear below those that it sees.
  perform pg_advisory_xact_lock_shared((${FIREHOSE_LOCKS}::bigint << 48) | p.last_value) from firehose_positions p;
  with moved as (
    update conversations c set head = c.head + e.count, last_at = e.last_at, is_released = false
    from unnest(ids, epochs, heads, counts, last_ats) with ordinality e(id, epoch, head, count, last_at, n)
    where c.id = e.id and c.owner = by_owner and c.epoch = e.epoch and c.head = e.head
      and exists (select from incarnations i where i.id = by_owner and i.ended_at is null)
    returning e.n, c.id, e.head, e.count
  ), inserted as (
    insert into events (conversation_id, seq, at, type, source, json)
    select m.id, x.seq, x.at, x.type, x.source, x.json
    from unnest(entries, seqs, ats, types, sources, jsons) x(entry, seq, at, type, source, json)
      join moved m on m.n = x.entry
  ), noted as (
    insert into firehose (conversation_id, first_seq, last_seq)
    select m.id, m.head + 1, m.head + m.count from moved m order by m.n
  )
  select array_agg(m.n) into stored from moved m;
  return query
    select coalesce(e.n = any(stored), false), c.owner, c.epoch, c.head
    from unnest(ids) with ordinality e(id, n) left join conversations c on c.id = e.id
    order by e.n;
end $function$;

-- Makes a log of the events that were copied. Returns its row; none if it has a log already, and was not created by this.
create function finish_copy(of_conversation uuid, by_owner bigint, by_request uuid, new_head bigint, new_last_at bigint)
returns table (id uuid, epoch bigint, head bigint, last_at bigint)
language plpgsql as $function$
begin
  perform pg_advisory_xact_lock_shared((${FIREHOSE_LOCKS}::bigint << 48) | p.last_value) from firehose_positions p;
  update conversations c
    set has_log = true, owner = by_owner, created_by = by_request, epoch = nextval('epochs'), head = new_head,
      last_at = new_last_at
    where c.id = of_conversation and not c.has_log;
  if found and new_head > 0 then
    insert into firehose (conversation_id, first_seq, last_seq) values (of_conversation, 1, new_head);
  end if;
  return query
    select c.id, c.epoch, c.head, c.last_at from conversations c
    where c.id = of_conversation and c.created_by = by_request and c.head = new_head;
end $function$;

-- Decides the outcome of appends whose connection broke: raises the epoch, so that a statement that the server has not
-- begun yet stores nothing, and returns the head.
create function decide_appends(by_owner bigint, ids uuid[])
returns table (id uuid, epoch_now bigint, head_now bigint)
language plpgsql as $function$
begin
  perform from conversations c where c.id = any(ids) order by c.id for update;
  return query
    update conversations c set epoch = nextval('epochs') where c.id = any(ids) and c.owner = by_owner
    returning c.id, c.epoch, c.head;
end $function$;

-- Returns the first seq at or after this time, or head + 1: the events of a log are in the order of their times.
create function first_seq_at(of_conversation uuid, head bigint, since bigint) returns bigint
language plpgsql stable as $function$
declare
  low bigint := 1;
  high bigint := head + 1;
  middle bigint;
begin
  while low < high loop
    middle := (low + high) / 2;
    if (select e.at from events e where e.conversation_id = of_conversation and e.seq = middle) < since then
      low := middle + 1;
    else
      high := middle;
    end if;
  end loop;
  return low;
end $function$;

create function remove_conversation(of_conversation uuid) returns void
language sql as $function$
  -- First, so that no append adds events afterwards.
  delete from conversations where id = of_conversation;
  delete from events where conversation_id = of_conversation;
  delete from summaries where conversation_id = of_conversation;
$function$;
`

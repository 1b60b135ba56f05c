/** A later version of the tables: the rows of the firehose are the order that all instances publish. */

import { FIREHOSE_LOCKS } from './first-migration.ts'

/**
 * The positions of one row, and the most events that it has. Its own position is the last of them, so that each event has
 * one, and a position up to which the rows are known is one up to which the events are.
 */
export const FIREHOSE_STEP = 1024

export const rowsOf = (first: string, last: string) => `generate_series(${first}, ${last}, ${FIREHOSE_STEP}) g`
export const lastIn = (last: string) => `least(g + ${FIREHOSE_STEP - 1}, ${last})`

export const FIFTH_MIGRATION = `
-- Another one if the order is lost: a cursor of the former is invalid.
alter table database_identity add column firehose_epoch text not null
  default substr(md5(gen_random_uuid()::text), 1, 16);

alter sequence firehose_positions increment by ${FIREHOSE_STEP};
-- Called: the next position is above this one, as a reader assumes of each lock.
select setval('firehose_positions', ${FIREHOSE_STEP});

alter table firehose rename to former_firehose;
alter index firehose_pkey rename to former_firehose_pkey;
create table firehose (
  position bigint primary key default nextval('firehose_positions'),
  conversation_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null
);
insert into firehose (conversation_id, first_seq, last_seq)
  select f.conversation_id, g, ${lastIn('f.last_seq')}
  from former_firehose f, ${rowsOf('f.first_seq', 'f.last_seq')}
  order by f.position, g;
drop table former_firehose;
-- Imported events have no rows yet.
insert into firehose (conversation_id, first_seq, last_seq)
  select c.id, g, ${lastIn('c.head')}
  from conversations c
    left join (select conversation_id, max(last_seq) as last_seq from firehose group by 1) f on f.conversation_id = c.id,
    ${rowsOf('coalesce(f.last_seq, 0) + 1', 'c.head')}
  where c.has_log
  order by c.created_at, c.id, g;

-- Adds the events of a log that were not appended: of a copy, or an imported one.
create function add_to_firehose(of_conversation uuid, first bigint, last bigint) returns void
language plpgsql as $function$
begin
  -- A reader knows from the lock that positions above this value may still appear below those that it sees.
  perform pg_advisory_xact_lock_shared((${FIREHOSE_LOCKS}::bigint << 48) | p.last_value) from firehose_positions p;
  insert into firehose (conversation_id, first_seq, last_seq)
    select of_conversation, g, ${lastIn('last')} from ${rowsOf('first', 'last')} order by g;
end $function$;

-- Returns the position up to which no row appears any more. Rows that are read by a later statement are complete up to it:
-- the lock of a transaction ends after its rows are visible. The order of the two statements matters.
create function firehose_horizon() returns bigint
language plpgsql volatile as $function$
declare
  reached bigint;
  lowest bigint;
begin
  select p.last_value into reached from firehose_positions p;
  select min(((l.classid::bigint << 32) | l.objid::bigint) & ((1::bigint << 48) - 1)) into lowest
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.classid::bigint >> 16 = ${FIREHOSE_LOCKS}
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
  return least(reached, lowest);
end $function$;

-- As in the first migration, with as many rows as the events of an entry need.
create or replace function append_events(
  by_owner bigint, ids uuid[], epochs bigint[], heads bigint[], counts bigint[], last_ats bigint[],
  entries integer[], seqs bigint[], ats bigint[], types text[], sources text[], jsons text[]
) returns table (is_stored boolean, owner_now bigint, epoch_now bigint, head_now bigint)
language plpgsql as $function$
declare
  stored bigint[];
begin
  -- In the order of the ids, so that two of these never wait for each other.
  perform from conversations c where c.id = any(ids) order by c.id for update;
  -- See add_to_firehose.
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
    select m.id, g, ${lastIn('m.head + m.count')} from moved m, ${rowsOf('m.head + 1', 'm.head + m.count')} order by m.n, g
  )
  select array_agg(m.n) into stored from moved m;
  return query
    select coalesce(e.n = any(stored), false), c.owner, c.epoch, c.head
    from unnest(ids) with ordinality e(id, n) left join conversations c on c.id = e.id
    order by e.n;
end $function$;

create or replace function finish_copy(of_conversation uuid, by_owner bigint, by_request uuid, new_head bigint, new_last_at bigint)
returns table (id uuid, epoch bigint, head bigint, last_at bigint)
language plpgsql as $function$
begin
  update conversations c
    set has_log = true, owner = by_owner, created_by = by_request, epoch = nextval('epochs'), head = new_head,
      last_at = new_last_at
    where c.id = of_conversation and not c.has_log;
  if found then
    perform add_to_firehose(of_conversation, 1, new_head);
  end if;
  return query
    select c.id, c.epoch, c.head, c.last_at from conversations c
    where c.id = of_conversation and c.created_by = by_request and c.head = new_head;
end $function$;
`

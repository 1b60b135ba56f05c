/** A later version of the tables: what lists show is stored with the events, so that each instance lists all conversations. */
import { lastIn, rowsOf } from './fifth-migration.ts'
import { FIREHOSE_LOCKS } from './first-migration.ts'

export const SEVENTH_MIGRATION = `
-- What lists show of a conversation after the event with this seq, and not for any other one.
alter table conversations add column listed text, add column listed_seq bigint not null default 0;
-- The time of deletions in the order of the firehose.
alter table deletions add column position bigint not null default 0, add column deleted_by bigint;
create index deletions_position on deletions (position);

-- Hashes of the settings of an instance, by name, as JSON.
alter table incarnations add column settings text not null default '{}';

-- Returns a position in the order of the firehose, which no reader has passed when the transaction ends.
create function next_firehose_position() returns bigint
language plpgsql volatile as $function$
begin
  perform pg_advisory_xact_lock_shared((${FIREHOSE_LOCKS}::bigint << 48) | p.last_value) from firehose_positions p;
  return nextval('firehose_positions');
end $function$;

-- Also for the deletions of an earlier version that still runs.
alter table deletions alter column position set default next_firehose_position();

-- Returns the conversations of other instances in which something has changed after this position, and what was deleted.
-- The first row has only the position for the next call. All that is committed before the call is returned, also beyond
-- that position: the next call returns it again.
create function changes_since(after_position bigint, asked_by bigint)
returns table (reached bigint, id uuid, is_deleted boolean, head bigint, last_at bigint, listed_seq bigint, listed text)
language plpgsql volatile as $function$
declare
  horizon bigint := firehose_horizon();
begin
  return query select horizon, null::uuid, false, 0::bigint, 0::bigint, 0::bigint, null::text;
  return query
    select horizon, c.id, false, c.head, c.last_at, c.listed_seq, c.listed
    from (select distinct f.conversation_id from firehose f where f.position > after_position) changed
      join conversations c on c.id = changed.conversation_id
    where c.has_log and c.owner is distinct from asked_by
      and not exists (select from deletions d where d.conversation_id = c.id)
    union all
    select horizon, d.conversation_id, true, 0::bigint, 0::bigint, 0::bigint, null::text
    from deletions d where d.position > after_position and d.deleted_by is distinct from asked_by;
end $function$;

-- As in the fifth migration. An entry of listings is what lists show after its events: null if that has not changed, and an
-- empty text if it is not known. Without listings, what was stored is not valid any more.
drop function append_events(
  bigint, uuid[], bigint[], bigint[], bigint[], bigint[], integer[], bigint[], bigint[], text[], text[], text[]);
create function append_events(
  by_owner bigint, ids uuid[], epochs bigint[], heads bigint[], counts bigint[], last_ats bigint[],
  entries integer[], seqs bigint[], ats bigint[], types text[], sources text[], jsons text[], listings text[] default null
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
    update conversations c set head = c.head + e.count, last_at = e.last_at, is_released = false,
      listed = coalesce(e.listing, c.listed),
      listed_seq = case
        when e.listing is not null or (listings is not null and c.listed_seq = c.head) then c.head + e.count
        else c.listed_seq
      end
    from unnest(ids, epochs, heads, counts, last_ats, listings) with ordinality
      e(id, epoch, head, count, last_at, listing, n)
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
`

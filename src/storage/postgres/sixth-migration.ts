/** A later version of the tables: an instance that stops says so, and old rows of the firehose are removed. */
import { FIREHOSE_STEP } from './fifth-migration.ts'

export const SIXTH_MIGRATION = `
alter table incarnations add column is_leaving boolean not null default false;

-- The rows up to this position were removed.
alter table database_identity add column firehose_trimmed bigint not null default 0;

-- Removes the oldest rows beyond those of the last appends, at most so many. Returns true if there may be more.
create function trim_firehose(kept_appends bigint, most integer) returns boolean
language plpgsql as $function$
declare
  through bigint;
  removed integer;
begin
  select max(f.position) into through from (
    select position from firehose
    where position <= (select last_value from firehose_positions) - kept_appends * ${FIREHOSE_STEP}
    order by position limit most
  ) f;
  if through is null then
    return false;
  end if;
  -- Also a lock: two instances do not remove the same rows.
  update database_identity set firehose_trimmed = greatest(firehose_trimmed, through);
  delete from firehose where position <= through;
  get diagnostics removed = row_count;
  return removed = most;
end $function$;
`

/** A later version of the tables: several instances write them, and each conversation has one owner. */

export const THIRD_MIGRATION = `
-- Returns true for the end that is recorded: an incarnation that this statement does not see has not ended.
create function has_ended(incarnation bigint) returns boolean
language sql stable as $function$
  select exists (select from incarnations i where i.id = incarnation and i.ended_at is not null)
$function$;

-- Returns true if this incarnation may write what belongs to the conversation: it has not ended, and no other one that
-- lives owns the conversation. The lock delays a takeover until the statement is over, so that the next owner reads what
-- was written.
create function may_write(of_conversation uuid, by_incarnation bigint) returns boolean
language plpgsql volatile as $function$
declare
  owner_now bigint;
begin
  select c.owner into owner_now from conversations c where c.id = of_conversation for share;
  return not has_ended(by_incarnation)
    and (owner_now is null or owner_now = by_incarnation or has_ended(owner_now));
end $function$;

create function empty_log(of_conversation uuid) returns void
language sql as $function$
  -- First, so that no append adds events afterwards.
  update conversations set has_log = false, head = 0, last_at = 0, epoch = nextval('epochs') where id = of_conversation;
  delete from events where conversation_id = of_conversation;
$function$;
`

/** Notes in a test database which instance has stored each event, and taken each epoch of a conversation, in which order. */
import type { TestDatabase } from './postgres.ts'

type Note = { readonly kind: 'epoch' | 'event'; readonly number: number; readonly instance: string }

/** The URL for one instance, whose name is noted with what it writes. */
export function urlOf({ url }: Pick<TestDatabase, 'url'>, instance: string): string {
  const named = new URL(url)
  named.searchParams.set('options', `-c test.instance=${instance}`)
  return named.href
}

/** Call it when the tables exist. */
export async function witnessAppends({ query }: TestDatabase): Promise<void> {
  await query(WITNESS)
}

/** Returns what was noted of a conversation, in order. */
export async function notesOf({ query }: TestDatabase, conversationId: string): Promise<Note[]> {
  const text = 'select kind, number::int, instance from witness where conversation_id = $1 order by position'
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the statement selects these columns
  return (await query(text, [conversationId])) as Note[]
}

/** Returns the events that an instance has stored after another one had taken a later epoch. */
export function lateEventsIn(notes: readonly Note[]): Note[] {
  let owner: string | undefined
  return notes.filter(({ kind, instance }) => {
    if (kind === 'epoch') owner = instance
    return kind === 'event' && instance !== owner
  })
}

// The row of the conversation is locked by both: the positions have the order in which they were stored.
const WITNESS = `
  create table witness (
    position bigint primary key generated always as identity,
    kind text, conversation_id uuid, number bigint, instance text
  );
  create function note_epoch() returns trigger language plpgsql as $f$ begin
    insert into witness (kind, conversation_id, number, instance)
      values ('epoch', new.id, new.epoch, current_setting('test.instance', true));
    return null;
  end $f$;
  create function note_event() returns trigger language plpgsql as $f$ begin
    insert into witness (kind, conversation_id, number, instance)
      values ('event', new.conversation_id, new.seq, current_setting('test.instance', true));
    return null;
  end $f$;
  create trigger note_epoch after insert or update of epoch on conversations for each row execute function note_epoch();
  create trigger note_event after insert on events for each row execute function note_event()`

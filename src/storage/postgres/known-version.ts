/** Tells conversations that this version of the server can continue from others. */
import { EVENT_VERSION } from '../../contract/events/event.ts'

/**
 * A condition on a row of `conversations` as `c`. An instance that does not know all events of a conversation could only read
 * it, and would keep it from one that can continue it.
 */
export const IS_KNOWN_VERSION = `
  case when starts_with(c.listed, '{') then coalesce((c.listed::jsonb ->> 'version')::integer, 0) else 0 end <= ${EVENT_VERSION}`

/** What the parts of a conversation may ask of its actor, which does one thing at a time. */
import type { Event } from '../../contract/events/event.ts'
import type { Intent } from '../../state/intents.ts'
import type { State } from '../../state/state.ts'

export type Inbox = {
  /** Queues the work and runs it in turn. Rejects with the `Problem` of a closed conversation. */
  enqueue<T>(work: () => Promise<T>): Promise<T>
  /** Decides, stores the events, and acts on the new state; in turn only. Throws a `Problem` if it is refused. */
  apply(intent: Intent): Promise<readonly Event[]>
  /** Does what `apply` does, for intents that end a run: if it cannot be stored now, it is stored later. */
  applyEnd(intent: Intent): Promise<readonly Event[]>
  /** Calls `plan` in turn, with the state at that time. */
  configure(plan: (state: State) => Promise<ConfigChange>): Promise<void>
}

/** What is enough to apply an intent. */
export type IntentInbox = Pick<Inbox, 'enqueue' | 'apply'>

/** A change of the configuration: its events, and the work before and after they are stored. */
export type ConfigChange = {
  readonly changes: Record<string, unknown>
  readonly before?: () => Promise<void>
  readonly after?: () => Promise<void>
}

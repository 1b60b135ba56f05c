/** The interface to the stored order of the firehose: the guarantees of every storage. */

import { Problem } from '../../contract/problem.ts'
import type { LogViews } from '../event-store.ts'

/** An event and its place in the order. The content of the event is in its log. */
export type OrderedEvent = { readonly position: number; readonly conversationId: string; readonly seq: number }

/**
 * Says that a log has events up to this seq. `isExact`: and not more, because it has become shorter, such as one that was
 * restored from a backup, or is deleted.
 */
export type LogHead = { readonly conversationId: string; readonly head: number; readonly isExact?: boolean }

/**
 * The order in which the firehose publishes the events of all conversations.
 *
 * - Positions increase, and need not be consecutive. Those of one conversation have its seqs in order, each once.
 * - What is at a position never changes: every later process reads what `sync` has made durable.
 * - The logs are authoritative. An event that is in its log but not here was not published; it can be added at any time. So
 *   nothing waits for this but the firehose.
 *
 * Call `add` and `sync` one after another. After a rejection of either dispose of it, and open it again.
 */
export interface FirehoseOrder extends AsyncDisposable {
  /** 16 hexadecimal digits. Another one if the order was lost and begins again: cursors of the former are invalid. */
  readonly epoch: string
  /**
   * Set if each append of any instance is in the order without `add`, and to be read from these logs. `sync` then finds out
   * what was appended.
   */
  readonly logs?: LogViews
  /** Events up to this position were removed from the order, because it has a bound. */
  readonly trimmed?: number
  /** The newest event is at most here, and nothing is added up to this position any more; 0 if no event was stored. */
  readonly last: number
  /**
   * Adds, entry by entry, the events of each conversation that it lacks up to this head: written. If the head is exact
   * and lower than before, the next events of the conversation follow it.
   */
  add(heads: readonly LogHead[]): Promise<void>
  /** Makes durable what was added. */
  sync(): Promise<void>
  /** Returns what is after this position, in order, at most `limit`. May be called at any time. */
  read(after: number, limit: number): Promise<OrderedEvent[]>
  /** Forgets the last seqs of all other conversations, to which nothing is added any more. Reads `ids` within the call. */
  keepOnly(ids: Iterable<string>): Promise<void>
}

export interface FirehoseOrderStore {
  /**
   * Nobody else in this process has it open. Calls `onNews` when another instance may have appended, until it is disposed. A
   * `sync` that finds out what was appended waits for `whenSynced`.
   */
  open(onNews: () => void, whenSynced?: () => Promise<void>): Promise<FirehoseOrder>
}

/** A reader at this position has missed events that were removed. Throws the `Problem` `invalid_cursor`; position 0 is the oldest event. */
export function requireUntrimmed(position: number, trimmedThrough: number): void {
  if (position === 0 || position >= trimmedThrough) return
  throw new Problem(
    'invalid_cursor',
    'The firehose no longer has the events after this cursor; use 0 to start from the oldest that it has, and read the logs of the conversations.',
  )
}

/** The interface to the stored order of the firehose: the guarantees of every storage. */

/** An event and its place in the order. The content of the event is in its log. */
export type OrderedEvent = { readonly position: number; readonly conversationId: string; readonly seq: number }

/** The last event of a log; `isExact` also if the log has become shorter, such as one that was restored from a backup. */
export type LogHead = { readonly conversationId: string; readonly head: number; readonly isExact?: boolean }

/**
 * The order in which the firehose publishes the events of all conversations.
 *
 * - Positions increase, and need not be consecutive. Those of one conversation have its seqs in order, each once.
 * - What is at a position never changes, also after a crash. An event that is not in the order was not published; it can be
 *   added at any time, so nothing waits for this but the firehose.
 *
 * Its calls are executed one after another, in the order of the calls. After a rejection of `add` or `sync` close it, and
 * open it again.
 */
export interface FirehoseOrder extends AsyncDisposable {
  /** 16 hexadecimal digits. Another one if the order was lost, and begins again: cursors of the former are invalid. */
  readonly epoch: string
  /** The last position; 0 if there is none. */
  readonly last: number
  /**
   * Adds, entry by entry, the events of each conversation that it lacks up to this head: written. If the head is exact
   * and lower than what was added, the next events of the conversation follow it.
   */
  add(heads: readonly LogHead[]): Promise<void>
  /** Makes durable what was added. */
  sync(): Promise<void>
  /** Returns what is after this position, in order, at most `limit`. May be called at any time. */
  read(after: number, limit: number): Promise<OrderedEvent[]>
  /** Forgets the last seqs of all other conversations: nothing is added to these any more. Their positions stay. */
  keepOnly(ids: Iterable<string>): Promise<void>
}

export interface FirehoseOrderStore {
  open(): Promise<FirehoseOrder>
}

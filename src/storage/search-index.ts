/**
 * The words of events, by which the search over all conversations finds them. A cache: it is made again from the logs. What
 * a word is, and which texts are indexed, is decided above.
 */
export interface SearchIndex {
  /** Returns the seq up to which each conversation is indexed. */
  heads(): Promise<ReadonlyMap<string, number>>
  /**
   * Stores these parts in order, each all or nothing. Rejects if one of them does not begin where its conversation is
   * indexed: call `heads` again.
   */
  add(parts: readonly IndexedPart[]): Promise<void>
  /** Removes everything of these conversations. */
  forget(ids: readonly string[]): Promise<void>
  /** Returns events that have all words, the newest first. */
  find(query: WordQuery): Promise<readonly FoundPlace[]>
}

/** The events of a log after one seq, up to another one. */
export type IndexedPart = {
  readonly conversationId: string
  readonly after: number
  readonly through: number
  /** What does not hold any more of the parts before it: it is removed. */
  readonly removed: readonly { readonly afterSeq: number; readonly beforeSeq: number }[]
  readonly events: readonly IndexedEvent[]
}

/** `at`: Unix time in milliseconds. `words`: separated by spaces, each without ASCII characters other than letters and digits. */
export type IndexedEvent = { readonly seq: number; readonly at: number; readonly words: string }

export type WordQuery = {
  /** Beginnings of words; at least one. */
  readonly words: readonly string[]
  readonly limit: number
  /** Selects events that come after this place in the order of results. */
  readonly after?: PositionOfResult | undefined
  /** Selects events of these conversations. */
  readonly ids?: readonly string[] | undefined
}

/** A place in the order of the results, which a storage understands that has returned it. */
export type PositionOfResult = { readonly at: number; readonly number: number }

export type FoundPlace = { readonly conversationId: string; readonly seq: number; readonly place: PositionOfResult }

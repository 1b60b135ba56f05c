/** What each answer of a model took, over all conversations: counted from the logs, to be summed without reading them again. */

/** `at`: Unix time in milliseconds. */
export type CountedAnswer = {
  readonly seq: number
  readonly at: number
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  /** Undefined if it is not known. */
  readonly costUsd: number | undefined
}

export type CountedConversation = {
  readonly id: string
  readonly userId: string | undefined
  readonly labels: readonly string[]
  /** All answers up to this event are counted. */
  readonly throughSeq: number
  /** The answers that are new. */
  readonly answers: readonly CountedAnswer[]
}

export type UsageQuery = {
  /**
   * The times at which the buckets begin, and at which the last one ends: Unix times in milliseconds, ascending, at
   * least two.
   */
  readonly edges: readonly number[]
  /** A conversation counts for each of its labels. Undefined: all are one group. */
  readonly by: 'model' | 'user_id' | 'label' | 'conversation' | undefined
  /** All that are given must match. */
  readonly only: { readonly conversations?: readonly string[] | undefined; readonly userId?: string | undefined }
  /** The number of groups, those that cost most; the others are one. */
  readonly limit: number
}

export type UsageSum = {
  /** The number of the bucket, from 0. */
  readonly bucket: number
  /** Empty for conversations without user or label; undefined for the rest. */
  readonly group: string | undefined
  readonly answers: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly costUsd: number
  /** Answers without a known cost. */
  readonly unpriced: number
}

/**
 * The counted answers. A cache of the logs, except for deleted conversations: what was counted of them stays. Throws the medium's
 * errors; a damaged table is made again, empty.
 */
export interface UsageTable {
  /** Returns up to which event each conversation is counted; what another instance counts may be missing. */
  counted(): Promise<ReadonlyMap<string, number>>
  /** Durable. What is counted a second time is ignored. */
  add(conversations: readonly CountedConversation[]): Promise<void>
  /** Returns the sums that are not empty, by bucket. */
  sum(query: UsageQuery): Promise<UsageSum[]>
}

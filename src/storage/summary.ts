/** What lists show of a conversation, and filter and sort by: in memory for each of them. */
import type { CurrentCall } from '../contract/conversations/summary.ts'
import type { Status } from '../contract/events/status.ts'

/**
 * What is kept in memory for every conversation; small, because there may be many. Times are Unix times in
 * milliseconds.
 */
export type Summary = {
  readonly id: string
  readonly status: Status
  /** Seq of the last event; 0 if the log cannot be read. */
  readonly lastSeq: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly title: string | undefined
  readonly userId: string | undefined
  /** The profile that it was made from. */
  readonly profile: string | undefined
  readonly labels: readonly string[]
  /** The fields of the metadata that lists can be filtered by, as texts. */
  readonly fields: Readonly<Record<string, string>>
  readonly preview: string
  readonly lastWords: string
  readonly model: string | undefined
  readonly costUsd: number | undefined
  readonly isArchived: boolean
  /** The requests that wait also while the conversation is closed. */
  readonly waiting: number
  /** The time when the oldest request that waits was opened; undefined if none waits. */
  readonly waitsSince: number | undefined
  /** The time when the first of them is closed without an answer, in milliseconds since 1970. */
  readonly deadline: number | undefined
  /** What another instance executes in the conversation now. */
  readonly currentCall?: CurrentCall | undefined
  /** Whether a run waits there for a place. */
  readonly isQueued?: boolean | undefined
  readonly idempotency: { readonly key: string; readonly bodyHash: string } | undefined
}

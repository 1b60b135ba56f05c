/** What is sent to one reader alone: a request to its client, or its end, or a row of a list. Never stored. */
import type { ConversationSummaryFrame } from '../contract/conversations/summary.ts'
import type { HookFrame } from '../contract/hooks/client-hooks.ts'

type RecordOf<F extends HookFrame | ConversationSummaryFrame> = {
  /** The value is always undefined, which distinguishes it from a stored event. */
  readonly seq: undefined
  readonly type: F['type']
  readonly event: F
  readonly json: string
}

export type RequestRecord = RecordOf<HookFrame>
export type SummaryRecord = RecordOf<ConversationSummaryFrame>

/** What one reader gets: the requests to its client, or rows. */
export type OwnRecordSource<R = RequestRecord | SummaryRecord> = {
  /** Returns the records that wait. */
  readonly due: () => readonly R[]
  /** Calls `add` for each later record. Returns a function that ends it. */
  readonly subscribe: (add: (record: R) => void) => () => void
}

export type RequestSource = OwnRecordSource<RequestRecord>

export const ownRecord = <F extends HookFrame | ConversationSummaryFrame>(event: F): RecordOf<F> => ({
  seq: undefined,
  type: event.type,
  event,
  json: JSON.stringify(event),
})

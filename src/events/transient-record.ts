/** A transient event for readers, serialised once and only if it is read. */
import type { TransientDraft, TransientEvent } from '../contract/events/transient-event.ts'

export type TransientRecord = {
  /** The value is always undefined, which distinguishes it from a stored event. */
  readonly seq: undefined
  readonly type: TransientEvent['type']
  readonly event: TransientEvent
  readonly json: string
}

export function createTransientRecord(draft: TransientDraft, conversationId: string, now: number): TransientRecord {
  const { type, ...fields } = draft
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a draft and what it lacks are an event
  const event = {
    type,
    conversation_id: conversationId,
    timestamp: new Date(now).toISOString(),
    ...fields,
  } as TransientEvent
  let json: string | undefined
  return {
    seq: undefined,
    type,
    event,
    get json() {
      json ??= JSON.stringify(event)
      return json
    },
  }
}

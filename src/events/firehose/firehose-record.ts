/** Records of the firehose: events of any conversation with the firehose's own position and cursor, and its notices. */
import type { Event } from '../../contract/events/event.ts'
import type { StoredEvent } from '../event-store.ts'
import { encodeCursor } from './firehose-cursor.ts'

/** `seq` is the position on the firehose; `event` contains the conversation's own seq. */
export type FirehoseEvent = StoredEvent & { readonly cursor: string }

export function firehoseEvent(position: number, epoch: string, storedEvent: StoredEvent): FirehoseEvent {
  return {
    seq: position,
    type: storedEvent.type,
    json: storedEvent.json,
    get cursor(): string {
      return encodeCursor(epoch, position)
    },
    get event(): Event {
      return storedEvent.event
    },
  }
}

/** A message on the firehose that is not an event. */
export type Notice = {
  readonly seq: undefined
  readonly type: 'conversation_deleted'
  readonly event: { readonly type: 'conversation_deleted'; readonly conversation_id: string }
  readonly json: string
  /** The owner, who decides which readers see it; not sent. */
  readonly owner: Owner
}

type Owner = { readonly id: string; readonly userId: string | undefined; readonly profile?: string | undefined }

export function deletedNotice(owner: Owner): Notice {
  const conversation_id = owner.id
  const event = { type: 'conversation_deleted', conversation_id } as const
  return { seq: undefined, type: event.type, event, json: JSON.stringify(event), owner }
}

/** Records of the firehose: events of any conversation under a position and a cursor of the firehose's own, and its notices. */
import type { Event } from '../../contract/events/event.ts'
import type { StoredEvent } from '../event-store.ts'
import { encodeCursor } from './firehose-cursor.ts'

/** `seq` is the position on the firehose; the conversation's own is in `event`. */
export type FirehoseEvent = StoredEvent & { readonly cursor: string }

export function firehoseEvent(position: number, epoch: string, stored: StoredEvent): FirehoseEvent {
  return {
    seq: position,
    type: stored.type,
    json: stored.json,
    get cursor(): string {
      return encodeCursor(epoch, position)
    },
    get event(): Event {
      return stored.event
    },
  }
}

/** What is told on the firehose and is no event. */
export type Notice = {
  readonly seq: undefined
  readonly type: 'conversation_deleted'
  readonly event: { readonly type: 'conversation_deleted'; readonly conversation_id: string }
  readonly json: string
  /** What decided who saw it; not sent. */
  readonly owner: Owner
}

type Owner = { readonly id: string; readonly userId: string | undefined }

export function deletedNotice(owner: Owner): Notice {
  const conversation_id = owner.id
  const event = { type: 'conversation_deleted', conversation_id } as const
  return { seq: undefined, type: event.type, event, json: JSON.stringify(event), owner }
}

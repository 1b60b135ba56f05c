/** Records of the firehose: events of any conversation under a position and a cursor of the firehose's own, and its notices. */
import type { Event } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { StoredEvent } from '../event-store.ts'

/** `seq` is the position on the firehose; the conversation's own is in `event`. */
export type FirehoseEvent = StoredEvent & { readonly cursor: string }

export function firehoseEvent(position: number, epoch: string, stored: StoredEvent): FirehoseEvent {
  return {
    seq: position,
    type: stored.type,
    json: stored.json,
    cursor: encodeCursor(epoch, position),
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
}

export function deletedNotice(conversation_id: string): Notice {
  const event = { type: 'conversation_deleted', conversation_id } as const
  return { seq: undefined, type: event.type, event, json: JSON.stringify(event) }
}

const POSITION_BYTES = 6
const CURSOR_CHARS = 19

/** Opaque to clients: which index, and the number of the record. */
export function encodeCursor(epoch: string, position: number): string {
  const bytes = Buffer.allocUnsafe(epoch.length / 2 + POSITION_BYTES)
  bytes.write(epoch, 'hex')
  bytes.writeUIntBE(position, epoch.length / 2, POSITION_BYTES)
  return bytes.toString('base64url')
}

/** The position, 0 for the beginning. Throws `invalid_cursor` for a cursor of another index, and for what is none. */
export function decodeCursor(cursor: string, epoch: string): number {
  if (cursor === '0') return 0
  const bytes = Buffer.from(cursor, 'base64url')
  const isOurs = cursor.length === CURSOR_CHARS && bytes.toString('hex', 0, epoch.length / 2) === epoch
  if (isOurs) return bytes.readUIntBE(epoch.length / 2, POSITION_BYTES)
  throw new Problem(
    'invalid_cursor',
    'The firehose of this server gave no such cursor; leave it out, or use 0 to start from the beginning.',
  )
}

/** What a reader of the firehose gets, and which cursors it may come with. */
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../event-log.ts'
import { decodeCursor } from './firehose-cursor.ts'
import type { FirehoseOrder } from './firehose-order.ts'
import { requireUntrimmed } from './firehose-order.ts'

/** A reader, which one caller passes to `follow` and disposes. */
export type FirehoseReader = Disposable &
  Pick<EventLog, 'head' | 'ended' | 'read' | 'subscribe' | 'messagesSoFar'> & {
    /** Throws `invalid_cursor` or `cursor_ahead`. */
    readonly positionOf: (cursor: string) => number
    readonly cursorAt: (position: number) => string
    /** A different cursor each time, for readers who must not learn whether others are active. */
    readonly freshCursorAt: (position: number) => string
  }

/** Throws a `Problem` if the cursor is of another index, after `head`, or before events that were removed. */
export function positionWithin(
  cursor: string,
  { epoch, trimmed = 0 }: Pick<FirehoseOrder, 'epoch' | 'trimmed'>,
  head: number,
): number {
  const position = decodeCursor(cursor, epoch)
  requireUntrimmed(position, trimmed)
  if (position <= head) return position
  throw new Problem('cursor_ahead', 'The firehose has not reached this cursor yet. Start from an earlier one.')
}

/** How a record looks on the wire of an event stream: made once, whatever the number of its readers. */
import type { StoredEvent } from './event-store.ts'
import type { FirehoseEvent, Notice } from './firehose/firehose-record.ts'
import type { TransientRecord } from './transient-record.ts'

/** What readers are shown: durable events, which have a `seq`, and what is not stored, which has none. */
export type Published = StoredEvent | FirehoseEvent | TransientRecord | Notice

// Beside the records, not in them: most are never streamed, and a frame lives no longer than its record.
const frames = new WeakMap<Published, Buffer>()

/**
 * The frame of Server-Sent Events. Only durable events carry an `id`: it is what the reader comes back with, and
 * nothing else can be gone back to. JSON holds no raw CR or LF, so one `data:` line always takes it.
 */
export function sseFrame(record: Published): Buffer {
  let frame = frames.get(record)
  if (!frame) {
    const id = record.seq === undefined ? '' : `id: ${'cursor' in record ? record.cursor : record.seq}\n`
    frame = Buffer.from(`${id}event: ${record.type}\ndata: ${record.json}\n\n`)
    frames.set(record, frame)
  }
  return frame
}

/** The frames of all of them in one buffer: one write to the socket instead of many. */
export function sseFrames(records: readonly Published[]): Buffer {
  const [first, ...others] = records
  return first && others.length === 0 ? sseFrame(first) : Buffer.concat(records.map(sseFrame))
}

/** The SSE frame of a record: created once for all its readers. */
import type { StoredEvent } from './event-store.ts'
import type { FirehoseEvent, Notice } from './firehose/firehose-record.ts'
import type { RequestRecord, SummaryRecord } from './request-record.ts'
import type { TransientRecord } from './transient-record.ts'

/** What readers receive: durable events, which have a `seq`, and transient ones, which have none. */
export type PublishedRecord = StoredEvent | FirehoseEvent | TransientRecord | RequestRecord | SummaryRecord | Notice

// Cached by record, not inside it: most are never streamed, and a frame lives no longer than its record.
const frames = new WeakMap<PublishedRecord, Buffer>()

/**
 * Returns the frame of Server-Sent Events. Only durable events have an `id`, with which the reader reconnects. JSON
 * contains no raw CR or LF, so one `data:` line is always enough.
 */
export function sseFrame(record: PublishedRecord): Buffer {
  let frame = frames.get(record)
  if (!frame) {
    const id = record.seq === undefined ? '' : `id: ${'cursor' in record ? record.cursor : record.seq}\n`
    frame = Buffer.from(`${id}event: ${record.type}\ndata: ${record.json}\n\n`)
    frames.set(record, frame)
  }
  return frame
}

/** Returns all frames in one buffer: one write to the socket instead of many. */
export function sseFrames(records: readonly PublishedRecord[]): Buffer {
  const [first, ...others] = records
  return first && others.length === 0 ? sseFrame(first) : Buffer.concat(records.map(sseFrame))
}

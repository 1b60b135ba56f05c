/** The WebSocket frame of a record: created once for all its readers. */
import type { Published } from './sse-frame.ts'

// As in `sse-frame.ts`: a frame lives no longer than its record.
const frames = new WeakMap<Published, Buffer>()

/** Returns the event as stored; on the firehose the cursor precedes it, because a frame has no other place for it. */
export function socketFrame(record: Published): Buffer {
  let frame = frames.get(record)
  if (!frame) {
    const { json } = record
    frame = Buffer.from('cursor' in record ? `{"cursor":"${record.cursor}",${json.slice(1)}` : json)
    frames.set(record, frame)
  }
  return frame
}

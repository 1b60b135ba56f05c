/** How a record looks on a WebSocket: made once, whatever the number of its readers. */
import type { Published } from './sse-frame.ts'

// As in `sse-frame.ts`: a frame lives no longer than its record.
const frames = new WeakMap<Published, Buffer>()

/** The event as it is stored; on the firehose its cursor stands before it, for a frame has no place beside its data. */
export function socketFrame(record: Published): Buffer {
  let frame = frames.get(record)
  if (!frame) {
    const { json } = record
    frame = Buffer.from('cursor' in record ? `{"cursor":"${record.cursor}",${json.slice(1)}` : json)
    frames.set(record, frame)
  }
  return frame
}

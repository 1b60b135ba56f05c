/** Sends a feed of events over a WebSocket, as `sse-reply.ts` does for event streams. */
import type { ErrorBody, Problem } from '../../contract/problem.ts'
import { CLOSE_CODES } from '../../contract/socket.ts'
import type { FeedSource, FollowOptions } from '../../events/event-feed.ts'
import { follow } from '../../events/event-feed.ts'
import type { FeedEnd } from '../../events/feed-buffer.ts'
import { cutRecord } from '../../events/cut-texts.ts'
import { feedLimits } from '../../events/feed-buffer.ts'
import type { SocketConnection } from './connection.ts'
import type { PublishedRecord } from '../../events/sse-frame.ts'

export type SendOptions = Pick<FollowOptions, 'afterSeq' | 'types' | 'only' | 'deltas' | 'requests' | 'heartbeatMs'> & {
  /** How many bytes the reader may be behind. */
  readonly bufferBytes: number
  /** Texts of events are cut after so many characters. */
  readonly maxText?: number
  /** Called at the start; the returned function is called with the outcome. */
  readonly onOpen: () => (end: { readonly lagged: boolean }) => void
  /** Sent first, after the subscription, so that no later event is missed. */
  readonly greetings: readonly object[]
  /**
   * Sent in place of a heartbeat when a filter has held back the events up to this position. Absent for a reader who must
   * not learn that there were any.
   */
  readonly reached?: (position: number) => object
}

const HEARTBEAT = { type: 'heartbeat' }

/** The last frame says why the socket closes. A reader that disconnected gets none. */
const GOODBYES: Readonly<Record<Exclude<FeedEnd, 'aborted'>, readonly [frame: object, code: number]>> = {
  deleted: [{ type: 'deleted' }, CLOSE_CODES.deleted],
  closing: [{ type: 'server_closing' }, CLOSE_CODES.server_closing],
  lagged: [{ type: 'lagged' }, CLOSE_CODES.lagged],
}

/** Resolves when the last frame was sent or the WebSocket was closed. Throws the feed's errors. */
export async function sendFeed(socket: SocketConnection, source: FeedSource, options: SendOptions): Promise<void> {
  const { bufferBytes, greetings, maxText, reached, onOpen, ...following } = options
  const feed = follow(source, { ...following, signal: socket.signal, limits: feedLimits(bufferBytes) })
  let reportedSeq = following.afterSeq ?? source.head
  let next = feed.next()
  const onEnd = onOpen()
  let hasLagged = false
  try {
    for (const greeting of greetings) await socket.send(greeting)
    for (;;) {
      const { value: batch, done } = await next
      if (done || socket.signal.aborted) return
      const { records, reachedSeq, end } = batch
      if (records.length > 0)
        await socket.sendAll(
          (maxText === undefined ? records : records.map((one) => cutRecord(one, maxText))).map(socketFrame),
        )
      else if (reached && reachedSeq > reportedSeq) await socket.send(reached(reachedSeq))
      else if (!end) await socket.send(HEARTBEAT)
      // The next heartbeat reports the position after events that a filter held back.
      reportedSeq =
        records.length > 0 ? (records.findLast(({ seq }) => seq !== undefined)?.seq ?? reportedSeq) : reachedSeq
      hasLagged = end === 'lagged'
      if (end) return end === 'aborted' ? undefined : await socket.end(...GOODBYES[end])
      next = feed.next()
    }
  } finally {
    onEnd({ lagged: hasLagged })
    next.catch(() => {}) // the peer disconnected while this was awaited
    await feed.return()
  }
}

/** Closes with 4000 plus the HTTP status, because WebSocket close codes have no room for it as such. */
export async function endWithProblem(
  socket: SocketConnection,
  problem: Problem,
  frameOf: (body: ErrorBody) => object = (body) => ({ type: 'error', ...body }),
): Promise<void> {
  await socket.end(frameOf(problem.toBody()), 4000 + problem.status)
}

// See `sse-frame.ts`: a frame lives no longer than its record.
const frames = new WeakMap<PublishedRecord, Buffer>()

/** Returns the frame of a record, created once for all its readers: the event as stored; on the firehose the cursor precedes it, because a frame has no other place for it. */
function socketFrame(record: PublishedRecord): Buffer {
  let frame = frames.get(record)
  if (!frame) {
    const { json } = record
    frame = Buffer.from('cursor' in record ? `{"cursor":"${record.cursor}",${json.slice(1)}` : json)
    frames.set(record, frame)
  }
  return frame
}

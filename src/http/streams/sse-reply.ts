/** Sends a feed of events as an SSE response: cursors in, frames out, at the reader's pace. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import type { FeedSource, FollowOptions } from '../../events/event-feed.ts'
import { follow } from '../../events/event-feed.ts'
import type { FeedEnd } from '../../events/feed-buffer.ts'
import { feedLimits } from '../../events/feed-buffer.ts'
import { cutRecord } from '../../events/cut-texts.ts'
import { sseFrames } from '../../events/sse-frame.ts'
import { closeSignal } from '../request/close-signal.ts'
import { RETRY_MS, errorFrame } from '../request/lasting-streams.ts'
import type { StreamWriter } from './stream-writer.ts'
import { createStreamWriter } from './stream-writer.ts'

export type StreamOptions = Pick<FollowOptions, 'afterSeq' | 'types' | 'only' | 'deltas' | 'requests'> & {
  /** How many bytes the reader may be behind. */
  readonly bufferBytes: number
  /** Returns the cursor with which the reader resumes after this position. */
  readonly cursorAt?: (position: number) => string
  /** Texts of events are cut after so many characters. */
  readonly maxText?: number
  /** True for a reader that must not learn about events it does not receive: only events move its cursor. */
  readonly hidesProgress?: boolean
  /** Called at the start; the returned function is called with the outcome. */
  readonly onOpen: () => (end: { readonly lagged: boolean }) => void
}

/** The frame has no empty line: some clients report one as an event, though nothing came before it. */
const HELLO = `retry: ${RETRY_MS}\n`

/** The last frame says why the stream ends. A reader that disconnected gets none. */
const GOODBYE: Readonly<Record<FeedEnd, string>> = {
  deleted: 'event: deleted\ndata: {"type":"deleted"}\n\n',
  closing: 'event: server_closing\ndata: {"type":"server_closing"}\n\n',
  lagged: 'event: lagged\ndata: {"type":"lagged"}\n\n',
  aborted: '',
}

/** A route option: 406 for a client that does not accept event streams, in the common error format. */
export async function requireEventStream(request: FastifyRequest): Promise<void> {
  const accept = request.headers.accept
  if (accept === undefined || /text\/event-stream|text\/\*|\*\/\*/i.test(accept)) return
  throw new Problem(
    'not_acceptable',
    'This route returns text/event-stream. Send that in Accept, or list the events instead.',
  )
}

/**
 * Resolves when the stream has ended on either side; without a last frame if the key is revoked or expires. Throws a
 * `Problem` only before the first byte.
 */
export async function streamEvents(reply: FastifyReply, source: FeedSource, options: StreamOptions): Promise<void> {
  const { bufferBytes, cursorAt = String, maxText, onOpen, hidesProgress = false, ...following } = options
  const signal = closeSignal(reply)
  const feed = follow(source, { ...following, signal, limits: feedLimits(bufferBytes) })

  // Subscribe before the client sees the first byte, so that it receives the events of its next requests.
  let next = feed.next()
  const onEnd = onOpen()
  let hasLagged = false
  let stream: StreamWriter | undefined
  let reportedSeq = following.afterSeq ?? source.head
  try {
    reply.header('cache-control', 'no-cache, no-transform')
    // The connection ends with the stream. A browser would otherwise reuse it while the server stops, get a 503, and
    // never reconnect.
    reply.header('connection', 'close')
    reply.sse.sendHeaders()
    stream = createStreamWriter(reply.raw)
    stream.write(HELLO)
    for (;;) {
      const { value: batch, done } = await next
      if (done || signal.aborted) return
      const hasMoved = batch.reachedSeq > reportedSeq && !hidesProgress
      const text = batch.records.length
        ? sseFrames(maxText === undefined ? batch.records : batch.records.map((one) => cutRecord(one, maxText)))
        : heartbeat(hasMoved ? cursorAt(batch.reachedSeq) : undefined)
      reportedSeq = batch.records.length
        ? (batch.records.findLast(({ seq }) => seq !== undefined)?.seq ?? reportedSeq)
        : batch.reachedSeq
      if (!stream.write(text)) await stream.drained(signal)
      hasLagged = batch.end === 'lagged'
      if (batch.end) return void stream.write(GOODBYE[batch.end])
      next = feed.next()
    }
  } catch (error) {
    // The head is already sent: the client gets an error frame, reconnects with its cursor, and then gets the status.
    next.catch(() => {})
    const problem =
      error instanceof Problem
        ? error
        : new Problem('internal', 'The stream failed. Reconnect with the last id.', { cause: error })
    if (!(error instanceof Problem)) reply.log.error({ err: error }, 'stream failed')
    if (!signal.aborted) stream?.write(errorFrame(problem))
  } finally {
    onEnd({ lagged: hasLagged })
    await feed.return()
  }
}

/**
 * A comment, with the cursor if a type filter held back the events that moved it. Only an empty line makes it take
 * effect.
 */
const heartbeat = (cursor: string | undefined) => (cursor === undefined ? ': heartbeat\n' : `id: ${cursor}\n\n`)

/** Returns where a client resumes in a log; undefined for new events only. */
export function seqAfter(lastEventId: string | undefined, after_seq: number | undefined): number | undefined {
  return lastEventId === undefined ? after_seq : parseEventId(lastEventId)
}

function parseEventId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Problem('invalid_cursor', 'This stream did not issue this Last-Event-ID. Leave it out, or use after_seq.')
}

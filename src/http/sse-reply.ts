/** A feed of events as an SSE response: cursors in, frames out, at the pace of the reader. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../contract/problem.ts'
import type { StreamEvents } from '../contract/events-api.ts'
import { follow } from '../events/event-feed.ts'
import type { FeedEnd } from '../events/feed-buffer.ts'
import { FEED_LIMITS } from '../events/feed-buffer.ts'
import type { EventLog } from '../events/event-log.ts'
import { sseFrames } from '../events/sse-frame.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { closeSignal } from './close-signal.ts'
import type { StreamWriter } from './stream-writer.ts'
import { createStreamWriter } from './stream-writer.ts'

export type StreamOptions = StreamEvents & {
  readonly lastEventId: string | undefined
  /** What the reader may be behind, bytes. */
  readonly bufferBytes: number
  /** Told when it begins; what it answers is told how it ended. */
  readonly onOpen: () => (end: { readonly lagged: boolean }) => void
}

/** A reader that takes nothing for so long is cut off, milliseconds. */
const STALL_TIMEOUT_MS = 60_000

/** How soon a client comes back, milliseconds. */
const HELLO = 'retry: 1000\n\n'

/** How the stream says why it is over; a reader that went away by itself is told nothing. */
const GOODBYE: Readonly<Record<FeedEnd, string>> = {
  deleted: 'event: deleted\ndata: {}\n\n',
  closing: 'event: server_closing\ndata: {}\n\n',
  lagged: 'event: lagged\ndata: {}\n\n',
  aborted: '',
}

/** A route option: 406 for a client that takes no event stream, in the form all errors have. */
export async function requireEventStream(request: FastifyRequest): Promise<void> {
  const accept = request.headers.accept
  if (accept === undefined || /text\/event-stream|text\/\*|\*\/\*/i.test(accept)) return
  throw new Problem(
    'not_acceptable',
    'This route answers text/event-stream; send that in Accept, or list the events instead.',
  )
}

/** Resolves when the stream is over, whoever ended it. Throws a `Problem` only before the first byte. */
export async function streamEvents(reply: FastifyReply, log: EventLog, options: StreamOptions): Promise<void> {
  const { lastEventId, after_seq, types, deltas, bufferBytes, onOpen } = options
  const signal = closeSignal(reply)
  const afterSeq = lastEventId === undefined ? after_seq : parseEventId(lastEventId)
  const limits = { ...FEED_LIMITS, softBytes: bufferBytes / 16, hardBytes: bufferBytes }
  const feed = follow(log, { ...withoutUndefined({ afterSeq, types }), deltas, signal, limits })

  // The feed has begun to listen before the client sees the first byte: what it does next, it will hear of.
  let next = feed.next()
  const onEnd = onOpen()
  let lagged = false
  let stream: StreamWriter | undefined
  try {
    reply.header('cache-control', 'no-cache, no-transform')
    reply.sse.sendHeaders()
    stream = createStreamWriter(reply.raw)
    stream.write(HELLO)
    for (;;) {
      const { value: batch, done } = await next
      if (done || signal.aborted) return
      const text = batch.records.length ? sseFrames(batch.records) : heartbeat(batch.reachedSeq)
      if (!stream.write(text)) await untilDrained(stream, reply, signal)
      lagged = batch.end === 'lagged'
      if (batch.end) return void stream.write(GOODBYE[batch.end])
      next = feed.next()
    }
  } catch (error) {
    // The head is out: the client is told in the stream, comes back with its cursor, and then gets the status.
    next.catch(() => {})
    const problem =
      error instanceof Problem
        ? error
        : new Problem('internal', 'The stream failed; come back with the last id.', { cause: error })
    if (!(error instanceof Problem)) reply.log.error({ err: error }, 'stream failed')
    if (!signal.aborted) stream?.write(`event: error\ndata: ${JSON.stringify(problem.toBody())}\n\n`)
  } finally {
    onEnd({ lagged })
    await feed.return()
  }
}

/** A comment, with the seq reached as the cursor: with a type filter nothing else would move it. */
const heartbeat = (reachedSeq: number) => `${reachedSeq > 0 ? `id: ${reachedSeq}\n` : ''}: heartbeat\n\n`

async function untilDrained(stream: StreamWriter, reply: FastifyReply, signal: AbortSignal): Promise<void> {
  try {
    await stream.drained(AbortSignal.any([signal, AbortSignal.timeout(STALL_TIMEOUT_MS)]))
  } catch {
    // It has read nothing for so long that it will not read a farewell either.
    reply.raw.destroy()
  }
}

function parseEventId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Problem('invalid_cursor', 'Last-Event-ID is none that this stream gave; leave it out, or use after_seq.')
}

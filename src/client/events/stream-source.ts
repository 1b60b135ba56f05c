/** One connection to an event stream: over HTTP, or through the source that the options of the client give. */
import { createSseDecoder, EventTooLarge } from '../../lib/sse-decoder.ts'
import { AgentServerError } from '../request/agent-server-error.ts'
import { connectionError, foreign, startOf } from '../request/response-error.ts'
import type { Transport } from '../request/transport.ts'
import { queryOf } from '../request/url.ts'

/** JSON is for errors: a request that accepts streams only gets a temporary failure as a stream that ends. */
const ACCEPT = 'text/event-stream, application/json'

export type StreamRequest = {
  /** `/conversations/{id}/events/stream` or `/firehose`. */
  readonly path: string
  /** The stream continues after it. Undefined: it begins with new events. */
  readonly cursor: string | undefined
  /** The other parameters of the query. */
  readonly query: object
  /** Aborted when the reader stops. */
  readonly signal: AbortSignal
  readonly maxRetries: number
}

/** `data` is the parsed JSON of a frame; absent when the connection has opened or only the cursor has moved. */
export type StreamFrame = { readonly cursor: string | undefined; readonly data?: unknown }

/**
 * Opens one connection and yields its frames in order, stored events with their cursor, until it ends. Never repeats a
 * request after the first frame: the reader opens the next connection with its cursor. Throws an `AgentServerError`
 * for a lost connection and for a refusal, and the reason of the signal when that aborts.
 */
export type StreamSource = (request: StreamRequest) => AsyncIterable<StreamFrame>

/** The server sends at least a comment every 15 seconds. After three of them are missing, the connection is dead. */
export const MAX_SILENCE_MS = 45_000

/** The header with the beginning of the firehose; absent from the streams of conversations. */
const CURSOR_HEADER = 'x-firehose-cursor'

/** The limits are in milliseconds: for the head of the response, and for each piece of its body. */
export function httpStreamSource(
  transport: Transport,
  { maxAnswerMs = MAX_SILENCE_MS, maxSilenceMs = MAX_SILENCE_MS } = {},
): StreamSource {
  return async function* ({ path, cursor, query, signal, maxRetries }) {
    const abort = new AbortController()
    const request = {
      method: 'GET',
      path: path + queryOf(query),
      headers: { accept: ACCEPT, ...(cursor !== undefined && { 'last-event-id': cursor }) },
      signal: AbortSignal.any([signal, abort.signal]),
      isRepeatable: true,
      maxRetries,
    }
    try {
      const reading = { signal, maxSilenceMs }
      const opening = { signal, maxSilenceMs: maxAnswerMs }
      const response = await withoutSilence(transport.send(request, requireStream), opening, unansweredError)
      yield { cursor: cursor ?? response.headers.get(CURSOR_HEADER) ?? undefined }
      if (response.body) yield* framesIn(response.body, reading)
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof AgentServerError ? error : connectionError(error, path)
    } finally {
      abort.abort()
    }
  }
}

async function requireStream(response: Response): Promise<Response> {
  if (/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) return response
  throw foreign(response, await startOf(response))
}

type Reading = { readonly signal: AbortSignal; readonly maxSilenceMs: number }

async function* framesIn(body: ReadableStream<Uint8Array>, reading: Reading): AsyncGenerator<StreamFrame> {
  const decoder = createSseDecoder()
  const text = new TextDecoder()
  const reader = body.getReader()
  let reachedCursor = ''
  let silence = bufferedStream
  try {
    for (;;) {
      const { value, done: isDone } = await withoutSilence(reader.read(), reading, silence)
      if (isDone) return
      silence = silentStream
      for (const { id, data } of push(decoder, text.decode(value, { stream: true }))) {
        yield { cursor: id || undefined, data: parse(data) }
        reachedCursor = id
      }
      if (decoder.lastId() !== reachedCursor) yield { cursor: (reachedCursor = decoder.lastId()) }
    }
  } finally {
    reader.cancel().catch(() => {}) // the connection is lost, or closed by us
  }
}

function push(decoder: ReturnType<typeof createSseDecoder>, piece: string) {
  try {
    return decoder.push(piece)
  } catch (error) {
    if (!(error instanceof EventTooLarge)) throw error
    throw new AgentServerError('unexpected_response', `The stream cannot be read: ${error.message}.`, { cause: error })
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new AgentServerError('unexpected_response', 'The stream contains an event that is not JSON.', { cause })
  }
}

/**
 * The time that the reader takes for an event does not count. Rejects when the signal aborts, because another `fetch`
 * may not notice it.
 */
async function withoutSilence<T>(
  chunk: Promise<T>,
  { signal, maxSilenceMs }: Reading,
  silence: () => AgentServerError,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  // The signal may have aborted before, and then nobody else waits for it.
  chunk.catch(() => {})
  const timer = setTimeout(() => reject(silence()), maxSilenceMs)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    return await Promise.race([chunk, promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** The server accepts connections and does nothing. `fetch` waits much longer, and one to a socket forever. */
const unansweredError = () =>
  new AgentServerError('connection_failed', 'The server did not answer in time. Check that it is running.')

export const silentStream = () => new AgentServerError('connection_failed', 'The stream was silent for too long.')

/** The server sends the first bytes at once, and another connection would wait as long. */
const bufferedStream = () =>
  new AgentServerError(
    'unexpected_response',
    'The stream was opened, and no byte of it arrived: a proxy buffers it. Turn buffering off for text/event-stream.',
  )

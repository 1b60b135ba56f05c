/**
 * One request on the network: sends it, yields the text of the answer as it arrives, and ends it after a time limit.
 */
import { afterRead, timerMs } from '../lib/bounded-wait.ts'
import { NotAnAnswer } from './answer/answer-assembly.ts'
import { OutOfTime, TimedOut } from './llm-errors.ts'

/** The time since the last byte of an unfinished answer: longer than models pause between two chunks. */
export const IDLE_TIMEOUT_MS = 300_000

/** The time after the model's finish reason: usage may follow, but some servers only keep the connection open. */
const AFTERWORD_MS = 5000

const LOOK_EVERY_MS = 1000

/** How long to wait for the last bytes of an answer, so that the connection can be reused. */
const DRAIN_MS = 1000

/** Sends a request and resolves with its response. Rejects if the status is an error, or the signal is aborted. */
export type Post = (request: {
  /** Sent unchanged. */
  readonly body: Buffer
  /** A limit for the SDK, which has one as well. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}) => Promise<Response>

export type Exchange = {
  readonly post: Post
  readonly body: Buffer
  readonly timeoutMs: number
  readonly idleMs: number
  readonly signal: AbortSignal
  /** Called with the headers of the response, before its body is read. */
  readonly onResponse?: (headers: Headers) => void
  /** Called when the reader leaves: returns true if the answer was complete, false if it is abandoned. */
  readonly isOver: () => boolean
}

/**
 * Yields decoded text. Throws the signal's reason when aborted, `TimedOut`, or the error of the SDK or the socket. A
 * reader that leaves early closes the connection, unless the answer was complete.
 */
export async function* exchange(options: Exchange): AsyncGenerator<string, void> {
  const { post, body, timeoutMs, idleMs, signal, onResponse, isOver } = options
  signal.throwIfAborted()
  const line = new AbortController()
  const onAbort = () => line.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const giveUp = () => {
    const message = `The model did not finish within ${timeoutMs / 1000} s: raise llm_config.timeout if it needs longer.`
    line.abort(new OutOfTime(message))
  }
  const deadline = setTimeout(() => afterRead(giveUp), timerMs(timeoutMs))
  const limitMs = () => (isOver() ? Math.min(idleMs, AFTERWORD_MS) : idleMs)
  const silence = createSilenceTimer(limitMs, () => {
    line.abort(new TimedOut(`The model's stream was silent for ${idleMs / 1000} s.`))
  })
  let chunks: AsyncIterator<Uint8Array> | undefined
  try {
    // Our timeout ends the request, with a better message.
    const response = await post({ body, timeoutMs: Math.ceil(timeoutMs) + 60_000, signal: line.signal })
    if (!response.body) throw new NotAnAnswer('')
    onResponse?.(response.headers)
    chunks = response.body[Symbol.asyncIterator]()
    const decoder = new TextDecoder()
    for (;;) {
      const { done, value } = await silence.during(chunks.next())
      if (done) break
      const text = decoder.decode(value, { stream: true })
      if (text !== '') yield text
    }
    chunks = undefined
    const rest = decoder.decode()
    if (rest !== '') yield rest
  } catch (error) {
    // An aborted read fails in many ways; this code knows why it was aborted.
    throw line.signal.aborted ? line.signal.reason : error
  } finally {
    clearTimeout(deadline)
    silence.stop()
    signal.removeEventListener('abort', onAbort)
    if (chunks && isOver() && !line.signal.aborted) void drain(chunks, line)
    else if (chunks) line.abort()
  }
}

/**
 * Cancelling immediately would close the connection, and the next step would need a handshake, only because of an empty
 * last chunk. Never rejects.
 */
async function drain(chunks: AsyncIterator<Uint8Array>, line: AbortController): Promise<void> {
  const timer = setTimeout(() => line.abort(), DRAIN_MS)
  try {
    while (!(await chunks.next()).done);
  } catch {
    // The answer is complete: errors of its connection no longer matter.
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Runs while the model is awaited: not before its first chunk, which may take as long as the request may, and not while
 * the reader is busy. It checks at intervals, because most reads take a millisecond. A time in which the process was stopped
 * counts as one interval at most: what was sent meanwhile is still to come.
 */
function createSilenceTimer(limitMs: () => number, onSilence: () => void) {
  const everyMs = timerMs(Math.min(limitMs() / 4, LOOK_EVERY_MS))
  let [waitingSince, silentMs]: [number | undefined, number] = [undefined, 0]
  let hasBegun = false
  const look = () => {
    if (waitingSince === undefined) return
    const now = performance.now()
    silentMs += Math.min(now - waitingSince, everyMs)
    waitingSince = now
    if (silentMs >= limitMs()) onSilence()
  }
  const timer = setInterval(() => afterRead(look), everyMs)
  return {
    async during<T>(read: Promise<T>): Promise<T> {
      silentMs = 0
      if (hasBegun) waitingSince = performance.now()
      try {
        return await read
      } finally {
        hasBegun = true
        waitingSince = undefined
      }
    },
    stop() {
      waitingSince = undefined
      clearInterval(timer)
    },
  }
}

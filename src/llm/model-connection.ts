/** One request on the wire: sends it, gives the text of the answer as it comes, and ends it when it takes too long. */
import type { OpenAI } from 'openai'
import { NotAnAnswer } from './answer/answer-assembly.ts'
import { OutOfTime, TimedOut } from './llm-errors.ts'

/** After the last byte of an answer that has not ended: longer than models think between two chunks. */
export const IDLE_TIMEOUT_MS = 300_000

/** After the model's last word: usage may follow, but some servers just keep the connection. */
const AFTERWORD_MS = 5000

const LOOK_EVERY_MS = 1000

/** How long the few bytes behind the end of an answer are waited for, so that the connection can be used again. */
const DRAIN_MS = 1000

export type Exchange = {
  readonly client: OpenAI
  readonly body: Buffer
  readonly timeoutMs: number
  readonly idleMs: number
  readonly signal: AbortSignal
  /** Asked when the reader leaves: whether the answer was over, or is given up. */
  readonly isOver: () => boolean
}

/**
 * Yields decoded text. Throws the signal's reason when aborted, `TimedOut`, or what the SDK or the socket threw. A reader
 * that leaves early closes the connection, unless the answer was over.
 */
export async function* exchange(options: Exchange): AsyncGenerator<string, void> {
  const { client, body, timeoutMs, idleMs, signal, isOver } = options
  signal.throwIfAborted()
  const line = new AbortController()
  const onAbort = () => line.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const deadline = setTimeout(() => {
    const message = `The model did not finish within ${timeoutMs / 1000} s: raise llm_config.timeout if it needs longer.`
    line.abort(new OutOfTime(message))
  }, timeoutMs)
  const limitMs = () => (isOver() ? Math.min(idleMs, AFTERWORD_MS) : idleMs)
  const silence = createSilenceTimer(limitMs, () => {
    line.abort(new TimedOut(`The model's stream was silent for ${idleMs / 1000} s.`))
  })
  let chunks: AsyncIterator<Uint8Array> | undefined
  try {
    chunks = await send(client, body, timeoutMs, line.signal)
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
    // An aborted read fails in many ways; why it was aborted is known here.
    throw line.signal.aborted ? line.signal.reason : error
  } finally {
    clearTimeout(deadline)
    silence.stop()
    signal.removeEventListener('abort', onAbort)
    if (chunks && isOver() && !line.signal.aborted) drain(chunks, line)
    else if (chunks) line.abort()
  }
}

async function send(client: OpenAI, body: Buffer, timeoutMs: number, signal: AbortSignal) {
  const response = await client
    .post('/chat/completions', {
      // Bytes go out as they are; of an object the SDK would make its own.
      body,
      headers: { 'content-type': 'application/json' },
      stream: true,
      signal,
      // Ours ends the request, and says so better.
      timeout: Math.ceil(timeoutMs) + 60_000,
    })
    .asResponse()
  if (!response.body) throw new NotAnAnswer('')
  return response.body[Symbol.asyncIterator]()
}

/** Cancelling at once would cost the connection, and the next step a handshake, for want of an empty last chunk. */
function drain(chunks: AsyncIterator<Uint8Array>, line: AbortController): void {
  const timer = setTimeout(() => line.abort(), DRAIN_MS)
  const untilEnd = async () => {
    while (!(await chunks.next()).done);
  }
  void untilEnd()
    // The answer is complete: what happens to its connection now concerns nobody.
    .catch(() => undefined)
    .finally(() => clearTimeout(timer))
}

/**
 * Counts while the model is waited for: not before its first word, which may take as long as the request may, and not
 * while the reader is busy with what came. It looks now and then, because most reads take a millisecond.
 */
function createSilenceTimer(limitMs: () => number, onSilence: () => void) {
  let waitingSince: number | undefined
  let hasBegun = false
  const timer = setInterval(
    () => {
      if (waitingSince !== undefined && performance.now() - waitingSince >= limitMs()) onSilence()
    },
    Math.min(limitMs(), LOOK_EVERY_MS),
  )
  return {
    async during<T>(read: Promise<T>): Promise<T> {
      if (hasBegun) waitingSince = performance.now()
      try {
        return await read
      } finally {
        hasBegun = true
        waitingSince = undefined
      }
    },
    stop: () => clearInterval(timer),
  }
}

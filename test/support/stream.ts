/** An SSE subscriber that keeps what it is sent. */
import { createSseDecoder } from '../../src/lib/sse-decoder.ts'
import { createFrames } from './frames.ts'
import { KEY } from './server.ts'

export type Frame = { readonly event: string; readonly id: string; readonly data: any } // eslint-disable-line typescript/no-explicit-any

export type Subscriber = {
  readonly frames: readonly Frame[]
  /** The first frame, seen already or to come, that fits. Throws when the stream ends without one. */
  readonly until: (fits: (frame: Frame) => boolean, timeoutMs?: number) => Promise<Frame>
  readonly close: () => void
  /** Resolves when the stream is over, whoever ended it. */
  readonly ended: Promise<void>
}

/** Resolves when the first bytes are there: what happens from then on is seen. */
export async function subscribe(url: string, path: string, headers: Record<string, string> = {}): Promise<Subscriber> {
  const abort = new AbortController()
  const response = await fetch(url + path, {
    headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream', ...headers },
    signal: abort.signal,
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const decoder = createSseDecoder()
  const frames = createFrames<Frame>(({ event }) => event)
  const take = (text: string) => {
    frames.add(...decoder.push(text).map(({ event, id, data }) => ({ event, id, data: JSON.parse(data) })))
  }

  take((await reader.read()).value ?? '')
  const ended = (async () => {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value)
    } catch (error) {
      if (!abort.signal.aborted && !(error instanceof TypeError)) throw error // a TypeError is a connection that broke
    } finally {
      frames.end()
    }
  })()

  return {
    frames: frames.seen,
    ended,
    close: () => abort.abort(),
    until: frames.until,
  }
}

/** Returns true if the server that was asked, for a stream or a socket, had not read its conversations yet. */
export const isStarting = (error: unknown): boolean =>
  error instanceof Error && /\b503 .*"reason":"starting"/.test(error.message)
